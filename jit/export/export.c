/* Writing a function to files, by its target's backend: its name there, and what forms there are. */
#include "jit/backend.h"
#include "jit/c/emit_c.h"
#include "symbols.h"

#include <string.h>

/* ---- The exported name ---- */

/* false: err is filled. */
static bool check_name(const char *name, char out[JIT_EXPORTED_NAME], ms_error *err) {
  emit_c_identifier(name, out, JIT_EXPORTED_NAME);
  if (strcmp(name, out) != 0)
    return ms_fail(
        err, MS_INVALID_ARGUMENT,
        "an exported function cannot be called `%.200s`: a name in C is of letters, digits and _, and begins "
        "with a letter",
        name);
  const char *owner = symbol_owner(name);
  return !owner || ms_fail(err, MS_INVALID_ARGUMENT,
                           "an exported function cannot be called `%s`: it is %s, and programs that are linked with it "
                           "would break; give another name",
                           name, owner);
}

bool jit_may_export(const char *name, ms_error *err) {
  char out[JIT_EXPORTED_NAME];
  assert(name);
  return check_name(name, out, err);
}

bool jit_exported_name(const struct tir *ir, tir_func f, const char *name, const char *path,
                       char out[JIT_EXPORTED_NAME], const char **owner, ms_error *err) {
  assert(tir_is_func(ir, f) && path);
  if (owner) *owner = NULL;
  if (name) return check_name(name, out, err);
  const char *own = tir_text(ir, ir->funcs.at[f].name), *slash = strrchr(path, '/');
  emit_c_identifier(own, out, JIT_EXPORTED_NAME);
  const char *whose = strcmp(own, out) ? "no name in C" : symbol_owner(own);
  if (owner) *owner = whose;
  if (!whose) return true;
  char base[JIT_EXPORTED_NAME];
  snprintf(base, sizeof base, "%s", slash ? slash + 1 : path);
  if (strrchr(base, '.')) *strrchr(base, '.') = 0;
  char plain[JIT_EXPORTED_NAME - 16];
  emit_c_identifier(base, plain, sizeof plain);
  static const char *const forms[] = {"%s", "%s_kernel",
                                      "kernel_%s"}; /* the last where a runtime has all that begins so */
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    snprintf(out, JIT_EXPORTED_NAME, forms[i], plain);
    if (!symbol_owner(out)) break;
  }
  assert(!symbol_owner(out));
  return true;
}

/* ---- All forms ---- */

static bool check_form(const char *suffix, const struct jit_target *target, const char *path, ms_error *err) {
  char known[64] = "";
  for (const char *const *form = jit_backend_of(target)->forms; *form; form++) {
    if (suffix && !strcmp(*form, suffix)) return true;
    strcat(strcat(known, *known ? " " : ""), *form);
  }
  return ms_fail(err, MS_INVALID_ARGUMENT, "%s: the suffix says the form: %s", path, known);
}

/* The kernel without what a system may refuse it. true, and *out NULL: it uses nothing of that. */
static bool lower_plain(const struct jit_exported *x, struct tir **out, ms_error *err) {
  const struct jit_backend *backend = jit_backend_of(x->target);
  struct jit_target less = *x->target;
  *out = NULL;
  if (!backend->withhold || !backend->withhold(x->lowered, x->f, &less)) return true;
  return (*out = jit_lowered_kernel(x->ir, x->f, x->cut, &less, x->options, err)) != NULL;
}

bool jit_export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                const char *path, ms_error *err) {
  assert(tir_is_func(ir, f) && target && path);
  const char *suffix = strrchr(path, '.');
  char name[JIT_EXPORTED_NAME];
  const char *wanted = options ? options->export_name : NULL;
  const struct jit_options own = jit_options_for(ir, f, options);
  if (!check_form(suffix, target, path, err) || !jit_exported_name(ir, f, wanted, path, name, NULL, err)) return false;
  struct jit_target narrow = *target;
  struct tir_packing cut;
  if (jit_backend_of(target)->narrow) jit_backend_of(target)->narrow(&narrow, suffix);
  if (!jit_split(ir, f, target, &cut, err)) return false;
  char pack_name[JIT_PACK_NAME], plain_name[JIT_EXPORTED_NAME + 8];
  struct tir *pack, *plain = NULL, *lowered = jit_lowered_parts(ir, f, &cut, &narrow, &own, NULL, NULL, &pack, err);
  jit_pack_name(name, pack_name);
  const struct jit_beside beside = {pack, f, pack_name};
  struct jit_exported x = {ir, lowered, f, name, pack ? &beside : NULL, NULL, &cut, &narrow, &own};
  bool ok = lowered && lower_plain(&x, &plain, err);
  snprintf(plain_name, sizeof plain_name, "%s.plain", name);
  const struct jit_beside without = {plain, f, plain_name};
  x.plain = plain ? &without : NULL;
  ok = ok && jit_backend_of(target)->export(&x, suffix, path, err);
  if (lowered) tir_free(lowered);
  if (pack) tir_free(pack);
  if (plain) tir_free(plain);
  tir_packing_free(&cut);
  return ok;
}
