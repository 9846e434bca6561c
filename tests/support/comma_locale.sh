#!/bin/sh
# Makes FOLDER/comma, a locale of ASCII that describes numbers alone, with a decimal comma; LOCPATH=FOLDER finds it.
# By localedef, of Debian's libc-bin; the exit status is not 0 without it.
# usage: comma_locale.sh FOLDER
set -e
cd "$1"
command -v localedef >/dev/null
{
  printf '<code_set_name> ANSI_X3.4-1968\n<comment_char> %%\n<escape_char> /\nCHARMAP\n'
  for c in $(seq 0 127); do printf '<U%04X> /x%02x\n' "$c" "$c"; done
  printf 'END CHARMAP\n'
} >map
printf '%s\n' 'comment_char %' 'escape_char /' LC_NUMERIC 'decimal_point ","' 'thousands_sep "."' 'grouping 3' \
  'END LC_NUMERIC' >source
localedef -c -i source -f map ./made >log 2>&1 || true # it warns of all else
mkdir comma
mv made/LC_NUMERIC comma/
