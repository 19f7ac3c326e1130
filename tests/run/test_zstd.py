"""If zstd lacks a function, has no memory or fails, prof says what to do, and loses nothing.

The library is made here, and is found first by LD_LIBRARY_PATH. It keeps
each column in a file, and packs the file's number.
"""

import json
import os
import subprocess
import unittest

from case import HANG_SECONDS, HAS_SANITIZER
from known_capture import Recorded
from nested_capture import nested_events

# A result is a size_t. As in zstd, an error is a number near the greatest.
LIBRARY = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
static char state;
static unsigned last;
static FILE *open_store(unsigned number, const char *how) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%u", STORE, number);
  return fopen(path, how);
}
void *ZSTD_createCCtx(void) { return NO_COMPRESSOR ? NULL : &state; }
size_t ZSTD_freeCCtx(void *x) { return x != &state; }
size_t ZSTD_compressCCtx(void *x, void *to, size_t room, const void *from, size_t count, int level)
{
  (void)x, (void)level;
  if (FAILS_TO_PACK || room < sizeof last) return (size_t)-70;
  FILE *const file = open_store(++last, "w");
  fwrite(from, 1, count, file);
  fclose(file);
  memcpy(to, &last, sizeof last);
  return sizeof last;
}
#if !NO_DECOMPRESSOR_FUNCTION
void *ZSTD_createDCtx(void) { return NO_DECOMPRESSOR ? NULL : &state; }
#endif
size_t ZSTD_freeDCtx(void *x) { return x != &state; }
size_t ZSTD_decompressDCtx(void *x, void *to, size_t room, const void *from, size_t count) {
  unsigned number;
  (void)x;
  if (FAILS_TO_UNPACK || count != sizeof number) return (size_t)-20;
  memcpy(&number, from, sizeof number);
  FILE *const file = open_store(number, "r");
  const size_t got = fread(to, 1, room, file);
  fclose(file);
  return IS_SHORT ? got - 1 : got;
}
unsigned ZSTD_isError(size_t result) { return result > (size_t)-120; }
"""
WAYS = (
    "NO_COMPRESSOR",
    "NO_DECOMPRESSOR",
    "NO_DECOMPRESSOR_FUNCTION",
    "FAILS_TO_PACK",
    "FAILS_TO_UNPACK",
    "IS_SHORT",
)


@unittest.skipIf(HAS_SANITIZER, "the library is made without a sanitizer")
class OtherZstd(Recorded):
    def setUp(self):
        super().setUp()
        trace = self.write("trace.json", json.dumps({"traceEvents": nested_events(3)}))
        self.prof("import", trace, "-o", "plain.prof")
        self.write("zstd.c", LIBRARY)
        os.mkdir(os.path.join(self.folder, "store"))
        self.good = self.library()
        self.prof("dump", "plain.prof", "-o", "packed.prof", "--pack", env=self.good)

    def library(self, way=None):
        """The variables with which prof finds a library that fails in this way."""
        folder = os.path.join(self.folder, f"lib-{way}")
        os.mkdir(folder)
        words = [f"-D{x}={int(x == way)}" for x in WAYS] + [f'-DSTORE="{self.folder}/store"']
        subprocess.run(
            [*("cc", "-shared", "-fPIC", "zstd.c", "-o", f"{folder}/libzstd.so.1"), *words],
            cwd=self.folder,
            timeout=HANG_SECONDS,
            check=True,
        )
        return {"LD_LIBRARY_PATH": folder}

    def table(self, name, **options):
        return self.prof("table", name, **options).stdout

    def test_the_library_in_front_is_used(self):
        self.assertEqual(self.table("packed.prof", env=self.good), self.table("plain.prof"))
        packed, plain = (
            os.path.getsize(os.path.join(self.folder, x)) for x in ("packed.prof", "plain.prof")
        )
        self.assertLess(packed, plain)

    def test_one_that_lacks_something_is_refused_by_name(self):
        for way, said in (
            ("NO_DECOMPRESSOR_FUNCTION", "libzstd.so.1 has no ZSTD_createDCtx; install a newer"),
            ("NO_COMPRESSOR", "there is no memory for zstd"),
            ("NO_DECOMPRESSOR", "there is no memory for zstd"),
        ):
            env = self.library(way)
            for words in (
                ("info", "packed.prof"),
                ("dump", "plain.prof", "-o", "x.prof", "--pack"),
            ):
                done = self.prof(*words, status=1, env=env)
                self.assertIn(said, done.stderr, words)
                self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "x.prof")))

    def test_columns_that_it_cannot_pack_stay_as_they_are(self):
        env = self.library("FAILS_TO_PACK")
        self.prof("dump", "plain.prof", "-o", "stored.prof", "--pack", env=env)
        nowhere = self.library("NO_DECOMPRESSOR_FUNCTION")  # no column needs it
        self.assertEqual(self.table("stored.prof", env=nowhere), self.table("plain.prof"))

    def test_columns_that_it_cannot_unpack_are_damage(self):
        for way in ("FAILS_TO_UNPACK", "IS_SHORT"):
            env = self.library(way)
            done = self.prof("table", "packed.prof", env=env)
            self.assertRegex(done.stderr, r"is damaged or cut off: \d+ places? could not be read")
            self.prof("table", "--strict", "packed.prof", status=1, env=env)


if __name__ == "__main__":
    unittest.main()
