"""The list of C functions and structs against the headers: names, sizes, offsets, numbers of
parameters."""

import ctypes
import os
import re
import subprocess
import tempfile
import unittest

from prof import _library, _op_structs, _structs

SOURCE = os.environ["PROF_TEST_SOURCE_DIR"]
HEADERS = ("trace", "memory", "op", "device", "sampler", "python")
INCLUDE = "".join(f"#include <prof/{name}.h>\n" for name in HEADERS)
STRUCTS = {
    "Device": "prof_device",
    "Args": "prof_args",
    "Site": "prof_site",
    "Details": "prof_details",
    "Options": "prof_options",
    "Metadata": "prof_metadata",
    "DumpOptions": "prof_dump_options",
    "Health": "prof_health",
    "TraceInfo": "prof_trace_info",
    "TraceThread": "prof_trace_thread",
    "TraceDevice": "prof_trace_device",
    "BackendState": "prof_backend_state",
    "SamplerOptions": "prof_sampler_options",
    "SamplerState": "prof_sampler_state",
    "EventMemory": "prof_event_memory",
    "EventLaunch": "prof_event_launch",
    "TraceArg": "prof_trace_arg",
    "Event": "prof_event",
    "EventBrief": "prof_event_brief",
    "AggregateOptions": "prof_aggregate_options",
    "Row": "prof_row",
    "Rows": "prof_rows",
    "RowMore": "prof_row_more",
    "ViewWish": "prof_i_view_wish",
    "ArrowOptions": "prof_arrow_options",
    "ArrowWish": "prof_i_arrow_wish",
    "ArrowStream": "struct ArrowArrayStream",
    "TraceSite": "prof_trace_site",
    "MemoryTextOptions": "prof_memory_text_options",
    "MemoryMax": "prof_memory_max",
    "PoolOptions": "prof_pool_options",
    "Op": "prof_op",
    "OpStream": "prof_op_stream",
    "OpOptions": "prof_op_options",
    "OpInfo": "prof_op_info",
    "OpOverlap": "prof_op_overlap",
    "OpComparison": "prof_op_comparison",
}


def compiler():
    return os.environ.get("CC", "cc")


def members(kind):
    """Names of fields; of an unnamed union its members'."""
    for name, of, *_ in kind._fields_:
        if name in getattr(kind, "_anonymous_", ()):
            yield from members(of)
        else:
            yield name


def fields_by_c():
    """name.field: (offset, bytes), and name: bytes, as the compiler has them."""
    lines = []
    for python, c in STRUCTS.items():
        lines.append(f'printf("{python} %zu 0\\n", sizeof({c}));')
        for field in members(struct_of(python)):
            lines.append(
                f'printf("{python}.{field} %zu %zu\\n", offsetof({c}, {field}), sizeof((({c} '
                f"*)0)->{field}));"
            )
    program = (
        "#include <stdio.h>\n#include <stddef.h>\n"
        + INCLUDE
        + f'#include "{SOURCE}/src/export/arrow_abi.h"\n'
        + "int main(void) {\n"
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w") as f:
            f.write(program)
        subprocess.run(
            [compiler(), "-I", os.path.join(SOURCE, "include"), source, "-o", binary], check=True
        )
        out = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        name, first, second = line.split()
        found[name] = (int(first), int(second))
    return found


def struct_of(name):
    return getattr(_structs, name, None) or getattr(_op_structs, name)


class Layout(unittest.TestCase):
    def test_every_struct_is_as_the_compiler_has_it(self):
        expected = fields_by_c()
        for python in STRUCTS:
            kind = struct_of(python)
            with self.subTest(struct=python):
                self.assertEqual(ctypes.sizeof(kind), expected[python][0])
                for field in members(kind):
                    descriptor = getattr(kind, field)
                    self.assertEqual(
                        (descriptor.offset, descriptor.size), expected[f"{python}.{field}"], field
                    )

    def test_no_struct_is_left_out(self):
        mirrored = {
            n
            for module in (_structs, _op_structs)
            for n, v in vars(module).items()
            if isinstance(v, type)
            and issubclass(v, ctypes.Structure)
            and not n.startswith("_")
            and v.__module__ == module.__name__
        }
        self.assertEqual(mirrored, set(STRUCTS))

    def test_structs_say_what_they_hold(self):
        health = _structs.Health(level=1, capture_path=b"/tmp/\xff.prof")
        health.lost_count[1] = 3
        text = repr(health)
        self.assertRegex(
            text,
            r"^Health\(recorded_count=0, lost_count=\[0, 3, 0, .*, level=1, "
            r"capture_path='/tmp/\ufffd\.prof', reason='', ",
        )
        self.assertEqual(repr(_structs.Device(2, 1)), "Device(type=2, index=1)")
        self.assertEqual(
            repr(_op_structs.OpComparison(order=1, ratio=0.5)),
            "OpComparison(order=1, doubts=0, is_paired=0, ratio=0.5, ratio_low=0.0, "
            "ratio_high=0.0)",
        )
        for python in STRUCTS:
            text = repr(struct_of(python)())
            self.assertTrue(text.startswith(f"{python}("), text)
            self.assertNotRegex(text, r"[( ](size|reserved)=")

    def test_every_function_is_exported_with_as_many_parameters(self):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
            source.write(INCLUDE)
            source.flush()
            text = subprocess.run(
                [compiler(), "-E", "-P", "-I", os.path.join(SOURCE, "include"), source.name],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        declared = {
            m[1]: m[2]
            for m in re.finditer(r"\b(prof_\w+)\(([^;{}]*?)\)\s*(?:__attribute__\(\([^;]*)?;", text)
        }
        for name, signature in _library.FUNCTIONS.items():
            with self.subTest(function=name):
                self.assertTrue(callable(getattr(_library.C, name)))
                if name.startswith("prof_i_python"):
                    continue
                parameters = declared[name].strip()
                count = 0 if parameters == "void" else parameters.count(",") + 1
                self.assertEqual(len(signature) - 1, count)

    def test_errors_have_a_python_type_each(self):
        with open(os.path.join(SOURCE, "include", "prof", "status.h")) as f:
            codes = {int(c) for c in re.findall(r"X\(PROF_\w+, (-\d+),", f.read())}
        self.assertEqual(set(_library._BASES), codes)


if __name__ == "__main__":
    unittest.main()
