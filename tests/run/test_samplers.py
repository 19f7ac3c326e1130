"""The tools gpu_info_power_profiler and gpu_info_vram_profiler of ``prof run``.

The devices are emulated: of AMD a folder made as the kernel's, of NVIDIA the library in
tests/device/vendors. No test is decided by time: programs wait for rows, and rows are counted.
"""

import csv
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from test_processes import LOOKS

BUILD = os.path.abspath(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"))
PROF = os.path.join(BUILD, "prof")
VENDORS = os.path.join(
    os.environ.get("PROF_TEST_PLUGIN_DIR", os.path.join(BUILD, "tests/device")),
    "vendors",
)
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

POWER, VRAM = "gpu_info_power_profiler", "gpu_info_vram_profiler"
POWER_CSV, VRAM_CSV = f"{POWER}_output.csv", f"{VRAM}_output.csv"
RATE = "0.002"


def wait_until(is_so):
    end = time.monotonic() + HANG_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("hangs")
        time.sleep(0.005)


def rows_program(name, rows=6, then="exit 0"):
    """Shell text: waits until the file has these rows and its heading."""
    return f'until [ "$(wc -l <{name})" -gt {rows} ]; do sleep 0.01; done; {then}'


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(parent, wanted):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == wanted and int(rest.split()[1]) == parent:
            found.append(int(pid))
    return found


def samplers_of(parent):
    return children_of(parent, "prof-run-sample")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "root")
        self.folder = os.path.join(folder.name, "work")
        os.mkdir(self.root)
        os.mkdir(self.folder)
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "PROF_SYSFS_ROOT": self.root}
        for name in (
            "HIP_VISIBLE_DEVICES",
            "CUDA_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
        ):
            self.env.pop(name, None)

    def have_nvidia(self):
        """Three devices with 100, 250 and 75.5 W; of 80 GiB 1, 20 and 0 are used."""
        if not os.path.exists(os.path.join(VENDORS, "libnvidia-ml.so.1")):
            self.skipTest("the emulated libraries were not built")
        self.env["LD_LIBRARY_PATH"] = VENDORS

    def have_amd(self, watts=("310", "0", "95.5")):
        """Devices of 192 GiB, of which a quarter is used. 0 W: a second die."""
        for number, power in enumerate(watts):
            self.put(number, "vendor", "0x1002")
            self.put(number, "uevent", f"PCI_SLOT_NAME=0000:0c:00.{number}")
            self.put(number, "mem_info_vram_used", 48 << 30)
            self.put(number, "mem_info_vram_total", 192 << 30)
            self.put(number, "hwmon/hwmon1/power1_average", int(float(power) * 1e6))

    def put(self, number, name, value):
        path = os.path.join(self.root, f"sys/class/drm/card{number}/device", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{value}\n")

    @staticmethod
    def words(*tools, **variables):
        """Options for the tools, all with these variables."""
        stack = [{"name": tool, "env_vars": {"SAMPLING_RATE": RATE, **variables}} for tool in tools]
        return ["--additional-context", json.dumps({"tools": stack})]

    def start(self, *words, **options):
        return subprocess.Popen([PROF, "run", *words], cwd=self.folder, env=self.env, **options)

    def run_prof(self, *words, status=0):
        done = subprocess.run(
            [PROF, "run", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    def check_file(self, name, heading, *cells):
        """Rows are whole, in the order of time, and hold these values."""
        heads, *rows = self.read(name)
        self.assertEqual(heads, ["time", *heading])
        self.assertGreaterEqual(len(rows), 6)
        for row in rows:
            self.assertRegex(row[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$")
            self.assertEqual(row[1:], list(cells))


class Files(Case):
    def test_power_and_memory_have_madengine_s_columns(self):
        self.have_nvidia()
        program = rows_program(POWER_CSV, then=rows_program(VRAM_CSV))
        self.run_prof("-q", *self.words(POWER, VRAM), "--", "sh", "-c", program)
        power = [f"Power(Watt) GPU{i}" for i in range(3)]
        self.check_file(POWER_CSV, power, "100.00", "250.00", "75.50")
        vram = [f"vram(%) GPU{i}" for i in range(3)]
        self.check_file(VRAM_CSV, vram, "1.25", "25.00", "0.00")

    def test_a_tool_by_its_name_samples_all_devices(self):
        self.have_amd(["310"])
        self.run_prof("-q", "-t", POWER, "--", "sh", "-c", rows_program(POWER_CSV))
        self.check_file(POWER_CSV, ["Power(Watt) GPU0"], "310.00")

    def test_devices_of_two_vendors_have_one_number_each(self):
        self.have_nvidia()
        self.have_amd()
        for devices, numbers in (("all", (0, 1, 2, 3, 5)), ("0", (0, 3)), ("0,2", (0, 2, 3, 5))):
            name = f"{devices}.csv"
            words = self.words(POWER, DEVICE=devices, OUTPUT_FILE=name)
            self.run_prof("-q", *words, "--", "sh", "-c", rows_program(name))
            heads = [f"Power(Watt) GPU{i}" for i in numbers]
            self.assertEqual(self.read(name)[0], ["time", *heads], devices)

    def test_named_devices_alone_are_sampled(self):
        self.have_amd()
        for devices in ("2,0", " 0, 2,2"):
            words = self.words(POWER, DEVICE=devices, OUTPUT_FILE="two.csv")
            self.run_prof("-q", *words, "--", "sh", "-c", rows_program("two.csv"))
            self.check_file("two.csv", [f"Power(Watt) GPU{i}" for i in (0, 2)], "310.00", "95.50")
            os.unlink(self.path("two.csv"))

    def test_names_with_a_prefix_are_today_s(self):
        self.have_amd()
        today = {
            "POWER_DEVICE": "2",
            "POWER_SAMPLING_RATE": RATE,
            "POWER_MODE": "vram",
            "POWER_DUAL_GCD": "false",
            "POWER_OUTPUT_FILE": "mine.txt",
        }
        stack = json.dumps({"tools": [{"name": POWER, "env_vars": today}]})
        program = rows_program("mine.txt")
        self.run_prof("-q", "--additional-context", stack, "--", "sh", "-c", program)
        self.check_file("mine.txt", ["vram(%) GPU2"], "25.00")

    def test_madengine_s_own_configuration_works_without_its_scripts(self):
        self.have_amd()
        variables = {
            "VRAM_DEVICE": "all",
            "VRAM_SAMPLING_RATE": RATE,
            "VRAM_MODE": "vram",
            "VRAM_DUAL_GCD": "false",
            "VRAM_OUTPUT_FILE": VRAM_CSV,
        }
        scripts = "scripts/common"
        entry = {
            "pre_scripts": [
                {"path": f"{scripts}/pre_scripts/gpu_info_pre.sh"},
                {"path": f"{scripts}/pre_scripts/gpu_info_vram_start.sh"},
            ],
            "cmd": "",
            "env_vars": variables,
            "post_scripts": [
                {"path": f"{scripts}/post_scripts/gpu_info_vram_stop.sh"},
                {"path": f"{scripts}/post_scripts/gpu_info_post.sh", "args": VRAM},
            ],
        }
        with open(self.path("tools.json"), "w", encoding="utf-8") as file:
            json.dump({"tools": {VRAM: entry}}, file)
        context = json.dumps({"tools": [{"name": VRAM, "env_vars": {"DEVICE": "1"}}]})
        options = [
            "-q",
            "--tools-config",
            "tools.json",
            "--additional-context",
            context,
        ]
        self.run_prof(*options, "--", "sh", "-c", rows_program(VRAM_CSV))
        self.check_file(VRAM_CSV, ["vram(%) GPU1"], "25.00")

    def test_a_second_run_does_not_write_over_the_first(self):
        self.have_amd()
        words = ["-q", "-o", "out", *self.words(POWER)]
        for name in (POWER_CSV, POWER_CSV.replace(".csv", ".2.csv")):
            self.run_prof(*words, "--", "sh", "-c", rows_program(f"out/{name}"))
            heads = [f"Power(Watt) GPU{i}" for i in (0, 2)]
            self.check_file(f"out/{name}", heads, "310.00", "95.50")
        with open(self.path("out/summary.2.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertIn(f"out/{name}", summary["files"])
        self.assertEqual(summary["tools"][0]["files"], [f"out/{name}"])

    def test_the_program_does_not_see_the_sampler_s_variables(self):
        self.have_amd()
        told = {
            "DEVICE": "0",
            "POWER_DEVICE": "2",
            "DUAL-GCD": "false",
            "MODE": "vram",
            "OWN": "1",
        }
        done = self.run_prof("-q", *self.words(POWER, **told), "--", "env")
        names = {line.split("=", 1)[0] for line in done.stdout.splitlines()}
        self.assertIn("OWN", names)
        self.assertFalse({*told, "SAMPLING_RATE"} - {"OWN"} & names, names)

    def test_beside_a_python_script_samples_are_counters_too(self):
        """The script's own Python may have no prof: the sampler needs none."""
        self.have_amd(["310"])
        with open(self.path("work.py"), "w", encoding="utf-8") as file:
            file.write("")
        words = ["-q", "-o", "out", *self.words(POWER), "-t", "prof", "--", "work.py"]
        self.env["PROF_PYTHON_PROGRAM"] = "true"
        self.run_prof(*words)
        self.assertTrue(os.path.exists(self.path(f"out/{POWER_CSV[:-4]}.prof")))

    def test_with_the_tool_prof_samples_are_counters(self):
        self.have_amd(["310"])
        words = ["-q", "-o", "out", *self.words(POWER), "-t", "prof"]
        self.run_prof(*words, "--", "sh", "-c", rows_program(f"out/{POWER_CSV}"))
        rows = len(self.read(f"out/{POWER_CSV}")) - 1
        capture = self.path(f"out/{POWER_CSV[:-4]}.prof")
        trace = self.path("trace.json")
        subprocess.run([PROF, "dump", capture, "-o", trace], check=True, timeout=HANG_SECONDS)
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        values = [e["args"] for e in events if e["ph"] == "C" and "amdgpu:0 power" in e["name"]]
        self.assertEqual(len(values), rows)
        self.assertEqual({v for value in values for v in value.values()}, {310})


class Refusals(Case):
    def refuse(self, *texts, **variables):
        words = ["-q", *self.words(POWER, **variables)]
        done = self.run_prof(*words, "--", "touch", "ran", status=125)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_wrong_values_are_told(self):
        self.have_amd()
        for name, values in {
            "DEVICE": ["", "x", "0,", "-1", "0,x", "0 1", "all,0"],
            "SAMPLING_RATE": ["", "0", "-1", "x", "0.1s", "nan", "inf", "0.0001"],
            "MODE": ["", "heat", "Power"],
            "DUAL-GCD": ["", "yes", "1"],
            "OUTPUT_FILE": ["", "folder/"],
        }.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    self.refuse(f"{name} is '{value}'; it must be", **{name: value})
        self.refuse("POWER_DEVICE is 'x'; it must be", POWER_DEVICE="x")

    def test_a_second_die_has_no_power_of_its_own(self):
        self.have_amd()
        self.refuse("DEVICE is '0,1', and device 1 tells no power", "two dies", DEVICE="0,1")
        words = self.words(POWER, DEVICE="all")
        self.run_prof("-q", *words, "--", "sh", "-c", rows_program(POWER_CSV))
        self.check_file(POWER_CSV, [f"Power(Watt) GPU{i}" for i in (0, 2)], "310.00", "95.50")
        words = self.words(VRAM, DEVICE="1")
        self.run_prof("-q", *words, "--", "sh", "-c", rows_program(VRAM_CSV))
        self.check_file(VRAM_CSV, ["vram(%) GPU1"], "25.00")

    def test_a_device_that_is_not_there_is_told(self):
        self.have_amd()
        self.refuse("DEVICE is '0,3', and there is no device 3: there are 3 (0 to 2)", DEVICE="0,3")
        self.refuse("DEVICE is '7', and there is no device 7: there are 3 (0 to 2)", DEVICE="7")
        self.refuse("DEVICE is '7,8', and there is no device 7: there are 3", DEVICE="8,7")

    def test_the_only_device_is_number_0(self):
        self.have_amd(["310"])
        self.refuse("there is no device 1: there is 1 (0)", DEVICE="1")

    def test_without_a_device_it_says_what_prof_doctor_says(self):
        doctor = subprocess.run([PROF, "doctor"], env=self.env, capture_output=True, text=True)
        why = re.search(r"^amdgpu .*?^  why +(.*?)$", doctor.stdout, re.M | re.S).group(1)
        self.assertIn("no device of AMD's", why)
        self.refuse("there is no device whose power can be read", f"amdgpu: {why}", "nvml: ")
        listed = self.run_prof("--list").stdout
        self.assertRegex(listed, f"(?m)^{VRAM} +no ")
        self.assertRegex(listed, f"(?m)^  {VRAM}:\n +there is no device whose memory can be read")

    def test_the_host_is_no_device(self):
        folder = os.path.join(self.root, "sys/class/powercap/intel-rapl:0")
        os.makedirs(folder)
        for name in ("energy_uj", "max_energy_range_uj"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("1000\n")
        self.refuse("there is no device whose power can be read")

    def test_the_list_names_them_where_they_work(self):
        self.have_nvidia()
        listed = self.run_prof("--list").stdout
        self.assertRegex(listed, f"(?m)^{VRAM} .*\n(?! *cannot)")
        self.assertRegex(listed, f"(?m)^{POWER} .*\n(?! *cannot)")

    def test_two_instances_need_two_devices(self):
        self.have_amd(["310"])
        self.refuse("DUAL-GCD is 'true'", "two devices", "there is 1", **{"DUAL-GCD": "true"})


class Ends(Case):
    def begin(self, *words, tools=(POWER,), **options):
        """A program that runs until the file "end" is there, and its sampler, which has sampled."""
        program = "until [ -e end ]; do sleep 0.01; done; exit 7"
        process = self.start(*words, *self.words(*tools), "--", "sh", "-c", program, **options)
        self.addCleanup(self.finish, process)
        self.wait_for_rows(6)
        (pid,) = samplers_of(process.pid)
        return process, pid

    def finish(self, process):
        self.touch_end()
        process.wait(HANG_SECONDS)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def touch_end(self):
        with open(self.path("end"), "w", encoding="utf-8"):
            pass

    def row_count(self):
        path = self.path(POWER_CSV)
        return len(self.read(POWER_CSV)) - 1 if os.path.exists(path) else 0

    def wait_for_rows(self, count):
        wait_until(lambda: self.row_count() >= count)

    def setUp(self):
        super().setUp()
        self.have_amd(["310"])

    def end(self, process):
        """The output, after the program has ended with its status."""
        self.touch_end()
        said = process.communicate(timeout=HANG_SECONDS)[1]
        self.assertEqual(process.returncode, 7, said)
        return said.decode()

    def test_the_status_is_the_program_s_and_nothing_is_left(self):
        process, sampler = self.begin("-q", stderr=subprocess.PIPE)
        self.assertEqual(self.end(process), "")
        self.assertFalse(is_alive(sampler))

    def test_a_killed_sampler_keeps_its_rows_and_is_told(self):
        process, sampler = self.begin("-q", stderr=subprocess.PIPE)
        os.kill(sampler, signal.SIGKILL)
        said = self.end(process)
        self.assertIn(f"the process of {POWER} was killed", said)
        self.check_file(POWER_CSV, ["Power(Watt) GPU0"], "310.00")

    def test_term_ends_the_sampler_at_once(self):
        process, sampler = self.begin("-q", stderr=subprocess.PIPE)
        os.kill(sampler, signal.SIGTERM)
        wait_until(lambda: not is_alive(sampler))
        self.assertIsNone(process.poll())
        said = self.end(process)
        self.assertIn(f"the process of {POWER} was ended before the program did", said)
        self.check_file(POWER_CSV, ["Power(Watt) GPU0"], "310.00")

    @unittest.skipUnless(os.environ.get("PROF_LONG"), "skip: takes 10 s: PROF_LONG=1")
    def test_a_sampler_that_does_not_end_holds_nobody(self):
        process, sampler = self.begin("-q", stderr=subprocess.PIPE)
        os.kill(sampler, signal.SIGSTOP)
        said = self.end(process)
        self.assertIn(f"the process of {POWER} does not end, and was killed", said)
        wait_until(lambda: not is_alive(sampler))

    def test_a_sampler_that_cannot_write_is_told(self):
        process, sampler = self.begin("-q", stderr=subprocess.PIPE)
        resource.prlimit(sampler, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

        def reads():
            with open(f"/proc/{sampler}/io", encoding="utf-8") as file:
                return int(re.search(r"syscr: (\d+)", file.read()).group(1))

        before = reads()
        wait_until(lambda: reads() > before + 10)  # one read is a sample: a row was due behind it
        said = self.end(process)
        self.assertIn(f"{POWER} has failed: cannot write", said)
        self.assertIn("RLIMIT_FSIZE", said)
        self.check_file(POWER_CSV, ["Power(Watt) GPU0"], "310.00")

    def test_a_sampler_ends_with_prof_run_and_the_program_goes_on(self):
        process, sampler = self.begin("-q")
        (program,) = children_of(process.pid, "sh")
        process.kill()
        process.wait(HANG_SECONDS)
        wait_until(lambda: not is_alive(sampler))
        self.check_file(POWER_CSV, ["Power(Watt) GPU0"], "310.00")
        self.assertTrue(is_alive(program))
        self.touch_end()
        wait_until(lambda: not is_alive(program))

    def test_a_signal_to_the_group_ends_no_sampler_before_the_program(self):
        program = "trap 'touch got' TERM; until [ -e end ]; do sleep 0.01; done; exit 7"
        words = ["-q", *self.words(POWER), "--", "sh", "-c", program]
        process = self.start(*words, start_new_session=True)
        self.addCleanup(self.finish, process)
        self.wait_for_rows(6)
        os.killpg(process.pid, signal.SIGTERM)
        wait_until(lambda: os.path.exists(self.path("got")))
        self.wait_for_rows(self.row_count() + 5)
        self.touch_end()
        self.assertEqual(process.wait(HANG_SECONDS), 7)

    def test_a_device_that_goes_leaves_a_gap(self):
        process, _ = self.begin("-q")
        shutil.rmtree(os.path.join(self.root, "sys"))
        wait_until(lambda: self.read(POWER_CSV)[-1][1:] == ["N/A"])
        self.touch_end()
        self.assertEqual(process.wait(HANG_SECONDS), 7)


class Dual(Case):
    """DUAL-GCD: the program runs twice at once, on two devices."""

    TOGETHER = (
        "import os, sys, time\n"
        "names = ('HIP_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES')\n"
        "own = [os.environ.get(name, '-') for name in names]\n"
        "open('here.' + own[0], 'w').close()\n"
        "while len([n for n in os.listdir() if n.startswith('here.')]) < 2: time.sleep(0.01)\n"
        "sys.stdout.write(' '.join(own + sys.argv[1:]) + '\\n')\n"
        "sys.exit(int(sys.argv[1]) if own[0] in sys.argv[2:] else 0)\n"
    )

    # Processes are seen while they run: prof looks from time to time.
    SEEN = LOOKS + "until = looks() + 3\nwhile looks() < until: time.sleep(0.005)\n"

    def run_twice(self, *words, status=0):
        options = self.words(POWER, **{"DUAL-GCD": "true"})
        program = [sys.executable, "-c", self.TOGETHER, *words]
        done = self.run_prof("-q", *options, "--", *program, status=status)
        return sorted(done.stdout.splitlines()), done.stderr

    def test_both_run_at_once(self):
        self.have_amd()
        self.assertEqual(self.run_twice("0", "$x")[0], ["0 0 - 0 $x", "1 1 - 0 $x"])

    def test_devices_are_those_that_the_user_lets_it_see(self):
        self.have_nvidia()
        self.env["CUDA_VISIBLE_DEVICES"] = "5,GPU-7,2"
        self.assertEqual(self.run_twice("0")[0], ["0 5 - 0", "1 GPU-7 - 0"])

    def test_a_status_that_is_not_0_is_the_run_s(self):
        self.have_amd()
        for device in ("0", "1"):
            said = self.run_twice("9", device, status=9)[1]
            self.assertIn(f"on device {device} the program ended with status 9", said)
            for name in ("here.0", "here.1"):
                os.unlink(self.path(name))

    def test_a_signal_reaches_both_and_both_are_waited_for(self):
        self.have_amd()
        program = (
            "trap 'touch got.$HIP_VISIBLE_DEVICES; exit 4' TERM; touch here.$HIP_VISIBLE_DEVICES; "
            "while :; do sleep 0.01; done"
        )
        options = self.words(POWER, **{"DUAL-GCD": "true"})
        process = self.start("-q", *options, "--", "sh", "-c", program)
        self.addCleanup(process.wait, HANG_SECONDS)
        for name in ("here.0", "here.1"):
            wait_until(lambda name=name: os.path.exists(self.path(name)))
        process.terminate()
        self.assertEqual(process.wait(HANG_SECONDS), 4)
        for name in ("got.0", "got.1"):
            self.assertTrue(os.path.exists(self.path(name)))

    def test_the_process_of_prof_that_starts_both_is_left_out(self):
        self.have_amd()
        options = self.words(POWER, **{"DUAL-GCD": "true"})
        program = [sys.executable, "-c", self.SEEN + self.TOGETHER, "0"]
        self.run_prof("-q", "-o", "out", *options, "-t", "prof", "--", *program)
        with open(self.path("out/summary.json"), encoding="utf-8") as file:
            names = {process["name"] for process in json.load(file)["processes"]}
        self.assertIn("python-c", names)
        self.assertNotIn("prof", names)

    def test_one_visible_device_is_told(self):
        self.have_amd()
        self.env["HIP_VISIBLE_DEVICES"] = "3"
        options = self.words(POWER, **{"DUAL-GCD": "true"})
        done = self.run_prof("-q", *options, "--", "touch", "ran", status=125)
        self.assertIn("HIP_VISIBLE_DEVICES is '3'; DUAL-GCD needs two devices", done.stderr)
        self.assertFalse(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
