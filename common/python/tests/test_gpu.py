"""Which GPU counts as usable, and the sentence when none does. nvidia-smi and nvcc are fakes."""
import pytest

from fa2course.launcher import gpu


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(gpu=..., driver_cuda=..., nvcc=...) -> gpu.detect() there."""
    def tool(name, body):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)

    def detect(smi="H200, 9.0, 580.1", driver_cuda="13.0", nvcc="13.0", arches="80 86 90",
               smi_status=0):
        found = smi and tool("nvidia-smi", f'''
            case "$*" in *query*) printf '{smi}\\n';;
              *) echo "| CUDA Version: {driver_cuda} |";; esac
            exit {smi_status}''')
        monkeypatch.setattr(gpu, "find_smi", lambda: found or None)
        compiler = nvcc and tool("nvcc", f'''
            case "$1" in --version) echo "Cuda compilation tools, release {nvcc}, V{nvcc}.1";;
            *) for a in {arches}; do echo compute_$a; done;; esac''')
        monkeypatch.setattr(gpu, "find_nvcc", lambda: compiler or None)
        return gpu.detect()

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return detect


def test_good_gpu(machine):
    found = machine()
    assert found.usable and found.reason == ""
    assert (found.name, found.cc, found.nvcc_version) == ("H200", "9.0", "13.0")


def test_best_of_several(machine):
    assert machine(smi="T4, 7.5, 580\\nA100, 8.0, 580").name == "A100"


def test_minor_versions_are_compatible(machine):
    assert machine(driver_cuda="12.2", nvcc="12.8").usable


def test_new_header_of_nvidia_smi(machine):
    assert machine(driver_cuda="13.0 | x").driver_cuda == "13.0"


@pytest.mark.parametrize("there, says", [
    (dict(smi=""), "nvidia-smi not found"),
    (dict(smi="NVIDIA-SMI has failed", smi_status=9), "NVIDIA-SMI has failed"),
    (dict(smi="T4, 7.5, 580.1"), "7.5"),
    (dict(nvcc=""), "no nvcc"),
    (dict(nvcc="11.8"), "11.8"),
    (dict(driver_cuda="12.4", nvcc="13.0"), "update the driver"),
    (dict(smi="B300, 10.3, 580.1"), "does not know"),
])
def test_unusable_gpu_has_a_reason(machine, there, says):
    found = machine(**there)
    assert not found.usable and says in found.reason and "\n" not in found.reason


def test_hidden_gpu(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" in machine().reason
