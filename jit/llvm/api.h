/* LLVM, whose library is opened when something is first compiled or loaded: opening it takes longer than all else that
 * a program does at its start. Internal to jit.
 *
 * A function of LLVM's C API is called by its own name, which api.def lists and generated/llvm_names.h turns into a
 * pointer that llvm_open fills. No other file includes LLVM's headers. */
#ifndef MSCHED_JIT_LLVM_API_H
#define MSCHED_JIT_LLVM_API_H

#include "tir/tir.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

struct llvm_api {
#define LLVM_FUNCTION(name) __typeof__(LLVM##name) *name;
#include "api.def"
};
extern struct llvm_api llvm_api;

/* Opens the library, once a process; any thread. Before it, no function of LLVM's may be called. False: it is missing,
 * or lacks a function, and err says what to install. Most callers need jit_start_llvm (machine.h), which calls this. */
bool llvm_open(ms_error *err);

#include "llvm_names.h"

#endif
