#!/usr/bin/env bash
# usage: bench/site_text.sh
# Bytes that one plain C call site adds to a program at -O2: sixteen functions with a scope around a
# call, less the same functions without. Code is what runs (.text*); the rest is the site's
# descriptor (.data) and its words (.rodata, .eh_frame). CC chooses the compiler. Prints lines as
# bench/frame.h does.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cc=${CC:-cc}
bound=192
command -v "$cc" >/dev/null || { echo "skip: no C compiler ($cc)"; exit 0; }
command -v size >/dev/null || { echo "skip: size is missing (binutils)"; exit 0; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# functions KIND: sixteen of them, each its own section, so that no two share an exit.
functions() {
  echo '#include <prof/profiler.h>'
  for i in $(seq 16); do
    echo "void work_$i(void); void f_$i(void);"
    case $1 in
      bare) echo "void f_$i(void) { work_$i(); }" ;;
      scope)
        echo "void f_$i(void) { WITH_BASE_PROFILER(PROF_HOST, \"site $i\", \"bench\"," \
          "PROF_NO_ARGS, { work_$i(); }); }"
        ;;
      arguments)
        echo "extern int n_$i;"
        echo "void f_$i(void) { WITH_BASE_PROFILER(PROF_HOST, \"site $i\", \"bench\"," \
          "PROF_ARGS(\"m\", n_$i, \"n\", n_$i), { work_$i(); }); }"
        ;;
    esac
  done
}

# sections KIND OPTION...: the bytes of code, data and words, summed.
sections() {
  local kind=$1
  shift
  functions "$kind" >"$directory/$kind.c"
  "$cc" -std=c11 -O2 "$@" -I"$root/include" -c "$directory/$kind.c" -o "$directory/$kind.o"
  size -A -d "$directory/$kind.o" | awk '
    /^\.text/ { code += $2 }
    /^\.(data|bss)/ { data += $2 }
    /^\.(rodata|eh_frame)/ { words += $2 }
    END { print code + 0, data + 0, words + 0 }'
}

echo "site_text: $(uname -m), $("$cc" --version | head -n 1)"
row() { # WHAT KIND IS_BOUND OPTION...
  local what=$1 kind=$2 is_bound=$3 verdict=shown limit=- c d w c0 d0 w0
  shift 3
  read -r c d w <<<"$(sections "$kind" "$@")"
  read -r c0 d0 w0 <<<"$(sections bare "$@")"
  c=$(((c - c0) / 16)) d=$(((d - d0) / 16)) w=$(((w - w0) / 16))
  if [ "$is_bound" = yes ]; then
    limit="$bound bytes"
    verdict=held
    [ "$c" -le "$bound" ] || verdict=NOT
  fi
  printf '%-56s | %-60s | %-11s | %s\n' "$what" \
    "$c bytes of code, $d of data, $w of words and unwind tables" "$limit" "$verdict"
}
row "text of a plain C call site, -O2" scope yes
row "text of a plain C call site, -O2 -fPIC" scope yes -fPIC
row "text of a C call site with two integers, -O2" arguments no
