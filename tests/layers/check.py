"""usage: check.py OBJECT...

Which module of libprof uses which, by the symbols of its objects, held against modules.txt. An
arrow that modules.txt does not allow fails. Function pointers are not seen.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent


def lines_of(name):
    for number, line in enumerate((HERE / name).read_text().split("\n"), 1):
        text = line.split("#")[0].strip()
        if text:
            yield f"{name}:{number}", text


def read_modules():
    """Which modules each may use, itself included; and what a module defines for lower ones."""
    uses, injected = {}, {}
    for where, text in lines_of("modules.txt"):
        if " defines " in text:
            module, _, symbol, _, users = text.split(maxsplit=4)
            injected[symbol] = (module, users.split())
            continue
        module, arrow, used = (part.strip() for part in text.partition("->"))
        if not arrow or not module or module in uses:
            sys.exit(f"{where}: not a new module and those that it may use: {text}")
        unknown = [name for name in used.split() if name not in uses]
        if unknown:
            sys.exit(f"{where}: {module} may use {unknown[0]}, which must stand above it")
        uses[module] = {module}.union(*(uses[name] for name in used.split()))
    return uses, injected


def module_of(source):
    """The folder in src that has the file."""
    return str(Path(source).parent.relative_to("src"))


def source_of(path):
    """An object's source as it is named in the tree: src/FOLDER/FILE.c."""
    match = re.search(r"\.dir/(?:\.\.?/|__/)*(src/.+)\.o$", path)
    return match[1] if match else None


def read_symbols(objects):
    """What each source defines and what it uses, by nm."""
    defined, used = {}, defaultdict(set)
    found = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True)
    for line in found.stdout.splitlines():
        path, _, rest = line.partition(":")
        source, fields = source_of(path), rest.split()
        if not source or len(fields) < 2:
            continue
        kind, symbol = fields[-2], fields[-1]
        if kind == "U":
            used[source].add(symbol)
        elif kind.isupper():
            defined[symbol] = source
    return defined, used


def find_arrows(uses, injected, defined, used):
    """Pairs of files that modules.txt does not allow, each with its symbols."""
    wrong = defaultdict(set)
    for source, symbols in used.items():
        allowed = uses[module_of(source)]
        for symbol in symbols:
            target = defined.get(symbol)
            if not target:
                continue
            module, users = injected.get(symbol, (None, ()))
            if module == module_of(target) and module_of(source) in users:
                continue
            if module_of(target) not in allowed:
                wrong[source, target].add(symbol)
    return wrong


def main():
    uses, injected = read_modules()
    defined, used = read_symbols(sys.argv[1:])
    sources = sorted({*defined.values(), *used})
    faults = [
        f"{source} is of no module; name its folder in modules.txt"
        for source in sources
        if module_of(source) not in uses
    ]
    if faults or len(sources) < 100:
        sys.exit("\n".join(faults) or f"only {len(sources)} sources in {len(sys.argv) - 1} objects")
    folders = {module_of(source) for source in sources}
    faults += [
        f"modules.txt names {module}, which has no object"
        for module in uses
        if module not in folders
    ]
    faults += [
        f"modules.txt: {module} does not define {symbol}"
        for symbol, (module, _) in injected.items()
        if symbol not in defined or module_of(defined[symbol]) != module
    ]
    wrong = find_arrows(uses, injected, defined, used)
    for (source, target), symbols in sorted(wrong.items()):
        names = ", ".join(sorted(symbols))
        faults.append(
            f"{source} ({module_of(source)}) uses {target} "
            f"({module_of(target)}), which modules.txt does not allow: {names}"
        )
    for fault in faults:
        print(fault)
    print(f"{len(sources)} sources, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
