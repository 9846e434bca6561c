#!/bin/sh
# Candidates for Arm CPUs run on an emulated one, with streaming vectors of 512 bits, for which there are tiles, and of
# others, where kernels do without; what they compute is what the interpreter does. 77: they are made, and there is no
# emulator, or no compiler for it, to run them. QEMU before 9 multiplies tiles of bytes wrongly: those are left out
# then.
# usage: kernels.sh MSCHED DRAWS SEED [few]
set -eu
msched=$1 draws=$2 seed=$3 few=${4:-}
here=$(dirname "$0")
qemu=${MSCHED_QEMU_ARM:-qemu-aarch64} cc=${MSCHED_CC_ARM:-aarch64-linux-gnu-gcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$("$qemu" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p;q')
bytes=
[ "${version:-9}" -ge 9 ] || bytes=no-bytes
"$msched" "$here/kernels.lua" make "$work" "$draws" "$seed" $few $bytes
for tool in "$qemu" "$cc"; do
  command -v "$tool" >/dev/null || { echo "not run: there is no $tool"; exit 77; }
done
{
  echo '#include <stdint.h>'
  echo 'typedef int32_t kernel(void **args, void *workspace);'
  sed 's/^\([0-9]*\) .*/kernel kernel_\1;/' "$work/list"
  echo 'extern kernel *const kernels[];'
  echo 'kernel *const kernels[] = {'
  sed 's/^\([0-9]*\) .*/  kernel_\1,/' "$work/list"
  echo '};'
} >"$work/kernels.c"
sed "s|^\([0-9]*\) .*|$work/\1.o|" "$work/list" >"$work/objects"
"$cc" -O1 -o "$work/run" "$here/run.c" "$work/kernels.c" @"$work/objects" -lgomp -lm
root=$("$cc" -print-sysroot)
[ -n "$root" ] && [ "$root" != / ] || root=/usr/aarch64-linux-gnu
for cpu in max,sme512=on max; do
  echo "-cpu $cpu"
  length=
  [ "$cpu" = max ] || length=64
  "$qemu" -L "$root" -cpu "$cpu" "$work/run" "$work" $length
  "$msched" "$here/kernels.lua" judge "$work"
  rm -f "$work"/*.out
done

# A network's library there, beside one for this machine.
cat >"$work/network.c" <<'C'
#include "digits.h"
#include <stdio.h>

int main(int argc, char **argv) {
  static float image[14 * 14], scores[10];
  const char *why;
  for (int i = 0; i < 14 * 14; i++) image[i] = (float)(i * 37 % 101) / 101;
  struct digits *net = digits_open(argc > 1 ? argv[1] : "", &why);
  if (!net) return fprintf(stderr, "%s\n", why), 1;
  int status = digits_run(net, (const void *[]){image}, (void *[]){scores}, NULL);
  for (int i = 0; i < 10; i++) printf("%.4f\n", scores[i]);
  digits_close(net);
  return status;
}
C
digits=$here/../../../lua/examples/digits.onnx
arm="llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v2 -num-cores=2"
for machine in own arm; do
  mkdir "$work/$machine"
  build=${CC:-cc} target=native
  [ $machine = own ] || build=$cc target=$arm
  CC=$build "$msched" export "$digits" --dim batch=1 --target "$target" -o "$work/$machine/digits.so" --db "$work/$machine/store.db" >/dev/null
  "$build" -O1 -I "$work/$machine" -o "$work/$machine/network" "$work/network.c" "$work/$machine/digits.so"
done
"$work/own/network" "$work/own/digits.weights" >"$work/own.scores"
"$qemu" -L "$root" -cpu max "$work/arm/network" "$work/arm/digits.weights" >"$work/arm.scores"
cmp "$work/own.scores" "$work/arm.scores" || { paste "$work/own.scores" "$work/arm.scores"; exit 1; }
echo "a network: the same scores"
