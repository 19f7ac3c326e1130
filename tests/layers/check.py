"""usage: check.py OBJECT...

Which module of libprof uses which, by the symbols of its objects, held against modules.txt.
exceptions.txt has today's arrows that modules.txt does not allow. An arrow that neither file has
fails, and so does an exception that is no arrow any more. Function pointers are not seen.
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
    """Which modules each may use, itself included; the module of each file, "*": of the rest."""
    uses, owner, module = {}, {}, None
    for where, text in lines_of("modules.txt"):
        if "->" in text:
            module, _, used = (part.strip() for part in text.partition("->"))
            unknown = [name for name in used.split() if name not in uses]
            if unknown:
                sys.exit(f"{where}: {module} may use {unknown[0]}, which must stand above it")
            uses[module] = {module}.union(*(uses[name] for name in used.split()))
            continue
        match = re.fullmatch(r"files (\S+): (.+)", text)
        if not match or not module:
            sys.exit(f"{where}: neither a module nor its files: {text}")
        for stem in match[2].split():
            path = f"{match[1]}/{stem}"
            if path in owner:
                sys.exit(f"{where}: {path} is of {owner[path]} already")
            owner[path] = module
    return uses, owner


def module_of(owner, source):
    path = str(Path(source).with_suffix(""))
    return owner.get(path) or owner.get(f"{Path(source).parent}/*")


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


def find_arrows(uses, owner, defined, used):
    """Pairs of files that modules.txt does not allow, each with its symbols."""
    wrong = defaultdict(set)
    for source, symbols in used.items():
        allowed = uses[module_of(owner, source)]
        for symbol in symbols:
            target = defined.get(symbol)
            if target and module_of(owner, target) not in allowed:
                wrong[source, target].add(symbol)
    return wrong


def main():
    uses, owner = read_modules()
    defined, used = read_symbols(sys.argv[1:])
    sources = sorted({*defined.values(), *used})
    faults = [
        f"{source} is of no module; name it in modules.txt"
        for source in sources
        if not module_of(owner, source)
    ]
    if faults or len(sources) < 100:
        sys.exit("\n".join(faults) or f"only {len(sources)} sources in {len(sys.argv) - 1} objects")
    there = {str(Path(source).with_suffix("")) for source in sources}
    faults += [
        f"modules.txt names {path}, which no object is made of"
        for path in owner
        if not path.endswith("/*") and path not in there
    ]
    wrong = find_arrows(uses, owner, defined, used)
    excepted = {
        tuple(re.split(r" +-> +", text)): where for where, text in lines_of("exceptions.txt")
    }
    for (source, target), symbols in sorted(wrong.items()):
        if (source, target) not in excepted:
            names = ", ".join(sorted(symbols))
            faults.append(
                f"{source} ({module_of(owner, source)}) uses {target} "
                f"({module_of(owner, target)}), which modules.txt does not allow: {names}"
            )
    for pair, where in excepted.items():
        if pair not in wrong:
            faults.append(f"{where}: {' -> '.join(pair)} is no arrow any more; take it out")
    for fault in faults:
        print(fault)
    print(f"{len(sources)} sources, {len(wrong)} arrows by exception, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
