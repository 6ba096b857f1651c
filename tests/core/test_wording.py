from torchcaps.core import counted


def test_one_thing_is_not_several():
    said = [counted(number, "patient") for number in (0, 1, 2, 1200)]
    assert said == ["0 patients", "1 patient", "2 patients", "1,200 patients"]
