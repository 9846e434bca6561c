/* Arguments of a call: by position and by keyword. */
#include "reader.h"

#include <string.h>

static bool read_keyword(struct tir_reader *r, struct tir_args *args) {
  tir_symbol word = tir_reader_token(r, r->at)->symbol;
  uint32_t token = r->at;
  r->at += 2;
  for (uint32_t i = 0; i < args->keyword_count; i++)
    if (args->keywords[i].word == word) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "this keyword stands twice");
  if (args->keyword_count == TIR_MOST_KEYWORDS) return tir_reader_fail(r, token, MS_TOO_LARGE, "too many keywords");
  args->keywords[args->keyword_count].word = word;
  args->keywords[args->keyword_count].used = false;
  return tir_read_value(r, &args->keywords[args->keyword_count++].value);
}

bool tir_read_args(struct tir_reader *r, struct tir_args *args) {
  struct tir_values values;
  struct tir_item value;
  tir_values_begin(&values);
  args->keyword_count = 0;
  char close = tir_reader_take_char(r, '[') ? ']' : ')'; /* T.Buffer[…] of long ago */
  if (close == ')' && !tir_reader_expect_char(r, '(', "before the arguments")) return false;
  bool good = true;
  while (good && !tir_reader_is_char(r, close)) {
    bool keyword = tir_reader_token(r, r->at)->kind == TIR_TOKEN_NAME && tir_reader_is(r, r->at + 1, TIR_PUNCT('=', 0));
    if (keyword)
      good = read_keyword(r, args);
    else if (args->keyword_count)
      good = tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected a keyword argument");
    else if (values.count == TIR_MOST_ARGS)
      good = tir_reader_fail(r, r->at, MS_TOO_LARGE, "too many arguments");
    else if ((good = tir_read_value(r, &value)))
      tir_values_add(&values, value);
    if (!good || !tir_reader_take_char(r, ',')) break;
  }
  args->count = values.count;
  return tir_values_end(&values, r, good, close, &args->first);
}

bool tir_arg_at(struct tir_reader *r, struct tir_args *args, uint32_t position, const char *keyword,
                struct tir_item *out) {
  assert(args->first + args->count <= r->item_count && args->keyword_count <= TIR_MOST_KEYWORDS);
  if (position < args->count) return *out = r->items[args->first + position], true;
  for (uint32_t i = 0; keyword && i < args->keyword_count; i++)
    if (!strcmp(tir_reader_word(r, args->keywords[i].word), keyword)) {
      args->keywords[i].used = true;
      return *out = args->keywords[i].value, true;
    }
  return false;
}

bool tir_args_done(struct tir_reader *r, struct tir_args *args, uint32_t most) {
  assert(args->name);
  if (args->count > most)
    return tir_reader_fail(r, r->items[args->first + most].token, MS_TEXT_TYPE, "%s takes at most %u arguments",
                           args->name, most);
  for (uint32_t i = 0; i < args->keyword_count; i++)
    if (!args->keywords[i].used)
      return tir_reader_fail(r, args->keywords[i].value.token, MS_TEXT_UNSUPPORTED,
                             "%s takes no argument \"%.60s\" here", args->name,
                             tir_reader_word(r, args->keywords[i].word));
  return true;
}
