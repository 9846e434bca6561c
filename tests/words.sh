#!/bin/sh
# The field's words: counts the coinages that once stood in our texts, and names the field's term for each.
# Documents: README.md, the guide, the man page, READMEs. Messages, and the texts of help: string literals of several
# words in Lua, C and shell. Comments, too. Of all modules and tests, but for this file, which names them. Prints the
# lines that have one; exit status 1 if there are any.
# usage: words.sh SOURCES [counts]   counts: how many of each row stand in documents and messages
set -e
cd "$1"
mode=${2:-check}

# A row: what it is called here; the pattern (in lower case; < and > are the edges of a word); the field's term; what
# may stand all the same, a pattern that is cut out of a line before it is searched; and files in which the word is
# right.
table() {
  cat <<'ROWS'
foreseen@<foresee(n|s|ing)?>|<unforeseen>@estimated@
boxes@box(es)? of (a |the )?tensors?|copies of boxes|<boxes>@TMA bulk tensor copies@boxes[:}]
producer@warp groups? more>|(producer|warp group) (that|which) copies@producer warp group@
by themselves@<(go|goes|going|went) on by (it|them)sel(f|ves)>@asynchronous copies (cp.async)@
products of groups@products? of (the )?warp groups?|groups (that|which) multiply@warp-group MMA (wgmma); consumer warp groups@
sums of a thread@sums? (of|in|that) (a|each|one) threads?|threads?'s? sums>|sums in registers@accumulators@
turns@<(a|each|one|every|next|last|first|per) turns?>|<turns (of|over)>@tile iterations (of a persistent kernel)@
wish@<wish(es|ed)?>@requested option@
versions of a buffer@<versions of (a|the|each|its|one|shared) buffers?|<buffers?'? versions?>@stage buffers, multi-buffering@
meet@<threads? (that |which |must |may |do )?meets?>|<(where|when|before) (threads|they) meet>|<meetings?>@synchronize at a barrier@
spread over banks@spread over (the )?banks@swizzled@
panels@<panels?>@canonical (wgmma) shared-memory layout, swizzled tiles@packed panels?@register_tile.lua|dot_tile.lua|autotvm.lua|html.lua
written out@<(loops?|it|them|is|are) written out>@unrolled@
assembler@(its|cuda's|nvidia's|the device's) assembler>@ptxas@
draft@<draft(s|ed|ing)?>|draft_verify@analytical estimate (the number), proposal (the candidate)@
first by estimate@<(first|cheap|cheapest|best) by estimate>@top-ranked by the analytical model@
contest@<contest(s|ed)?>|<contenders?>@final re-measurement, finalists@
recall@<recall(s|ed|ing)?>|known again>@memoized postprocessing, cache hit@(the|correlation|%) recall|recalled[,:]|recall (%|is)|recall: the share
lessons@<lessons?>@training samples@
reach@<peak reach>|<(the|a|its|one's|measured|of) reach>|<reaches of>@measured peak@
witnesses@<witness(es|ed)?>@oracles@
peer@<peers?('s)?>@TVM, or MetaSchedule@@
hostile@<hostile>@checked (build)@
shaken@<(shake|shaken|shakes|shaking|shook)>@thread-timing perturbation, perturbed@
digits@all (of )?(its|their) digits@full-mantissa data@
tiles lent@<tiles?[^.;]* len(t|ds?)>|<lends? [^.;]*tiles?>@AMX permission granted@or lent:
box, heeding@<heed(s|ed|ing)?>|<ms\.box>|<sandbox box>@sandbox, interruptible@
ways@<ways? of (autotvm|flextensor|ansor|other tuners|working)>@compatibility libraries@
rooms, doors@<rooms>|<(each|this|another|other|its own) room>|<doors?>@modules, public headers@
anew@<anew>@again, resampled, from scratch@
near, close@<(near|close) (of|in) registers>@within 10 %, within one allocation step@
compiled estimate@<compiled estimate>@the C implementation of the analytical model@
what is said of@<what (is|was|are) (foreseen|said|known) (of|about)>@the estimate of X, reported X, X's record@
ROWS
}

# Lines of documents, each after its file and number.
documents() {
  find "$@" -name '*.md' | sort | xargs awk '{ print FILENAME ":" FNR ":" $0 }' README.md lua/msched.1
}

# String literals of several words: what messages, help and reports are made of. A member's line of docs.lua and a
# term's have their text after a bar.
literals() {
  find "$@" -name '*.lua' -o -name '*.[ch]' -o -name '*.def' -o -name '*.sh' | sort | xargs awk '
    /^[ \t]*(--|\/\*|\* |#include)/ || (FILENAME ~ /\.sh$/ && /^[ \t]*#/) { next }
    FILENAME ~ /cli\/help\/(docs|terms)\.lua$/ && match($0, / \| /) { print FILENAME ":" FNR ":" substr($0, RSTART + 3); next }
    {
      line = $0
      while (match(line, /"([^"\\]|\\.)*"/)) {
        text = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (index(text, " ")) print FILENAME ":" FNR ":" text
      }
    }'
}

# Comments: what follows -- in Lua, stands between the marks in C, and begins a line with # in shell and Python.
comments() {
  find "$@" -name '*.lua' -o -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' | sort | xargs awk '
    FILENAME ~ /\.(sh|py)$/ {
      if (/^[ \t]*#/) print FILENAME ":" FNR ":" $0
      next
    }
    FILENAME ~ /\.lua$/ {
      gsub(/"([^"\\]|\\.)*"/, "")
      if (match($0, /--/)) print FILENAME ":" FNR ":" substr($0, RSTART)
      next
    }
    FNR == 1 { inside = 0 }
    {
      rest = $0
      text = ""
      while (1) {
        if (!inside) {
          if (!match(rest, /\/\*/)) break
          rest = substr(rest, RSTART + 2)
          inside = 1
        }
        if (!match(rest, /\*\//)) { text = text " " rest; break }
        text = text " " substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + 2)
        inside = 0
      }
      if (text != "") print FILENAME ":" FNR ":" text
    }'
}

search() {
  table >"$scratch/rows"
  awk -v mode="$mode" -v kind="$1" '
    function edges(p) { gsub(/</, "(^|[^a-z_])", p); gsub(/>/, "([^a-z_]|$)", p); return p }
    NR == FNR {
      split($0, part, "@")
      count++
      name[count] = part[1]; term[count] = part[3]
      pattern[count] = edges(part[2]); allowed[count] = edges(part[4]); exempt[count] = part[5]
      any = any (count > 1 ? "|" : "") pattern[count]
      next
    }
    {
      text = $0
      file = substr($0, 1, index($0, ":") - 1)
      sub(/^[^:]*:[0-9]*:/, "", text)
      text = tolower(text)
      gsub(/`[^`]*`/, " ", text)                                # code, and names of members and files: they are not prose
      gsub(/[a-z_]+[.:\/][a-z_][a-z_.:\/]*/, " ", text)
      gsub(/[a-z_]+\(/, " ", text)
      gsub(/^\.b[ri]* .*/, " ", text)                            # a field or an option of the man page
      if (text !~ any) next
      for (i = 1; i <= count; i++) {
        if (exempt[i] != "" && file ~ exempt[i]) continue
        rest = text
        if (allowed[i] != "") gsub(allowed[i], " ", rest)
        if (rest !~ pattern[i]) continue
        found[i] += gsub(pattern[i], " ", rest)
        bad++
        if (mode == "check") printf "%s\n    %s: the field says %s\n", $0, name[i], term[i]
      }
    }
    END {
      if (mode != "check") for (i = 1; i <= count; i++) printf "%s\t%s\t%d\n", kind, name[i], found[i]
      if (mode == "check") exit bad > 0
    }' "$scratch/rows" -
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
for kind in documents literals comments; do
  $kind lua rules search tir vm jit db tests | grep -v '^tests/words\.sh:' | search $kind || failed=1
done
if [ "$mode" = check ]; then # what it must find
  printf 'x:1:A draft of the peer\n' | search itself >"$scratch/found" && failed=1
  [ "$(grep -c 'the field says' "$scratch/found")" = 2 ] || failed=1
  printf 'x:1:a drafty room_temperature, `peer`, packed panels\n' | search itself || failed=1
fi
exit $failed
