"""Digits drawn with a pen, and what becomes of a page when somebody photographs it."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

PAPER, INK = 235.0, 40.0


def _arc(centre, radii, first, last):
    angles = [math.radians(first + (last - first) * step / 40) for step in range(41)]
    return [(centre[0] + radii[0] * math.cos(a), centre[1] + radii[1] * math.sin(a)) for a in angles]


STROKES = {
    "0": [_arc((0.5, 0.5), (0.3, 0.45), -90, 270)],
    "1": [[(0.35, 0.22), (0.55, 0.05), (0.55, 0.95)]],
    "2": [[*_arc((0.5, 0.3), (0.28, 0.25), -170, 30), (0.25, 0.92), (0.8, 0.92)]],
    "3": [_arc((0.45, 0.28), (0.28, 0.23), -150, 85) + _arc((0.45, 0.72), (0.32, 0.24), -85, 150)],
    "4": [[(0.55, 0.05), (0.15, 0.62), (0.85, 0.62)], [(0.62, 0.35), (0.6, 0.97)]],
    "5": [[(0.75, 0.06), (0.3, 0.06), (0.27, 0.45), *_arc((0.45, 0.68), (0.3, 0.26), -110, 140)]],
    "6": [[(0.65, 0.05), (0.4, 0.3), *_arc((0.48, 0.7), (0.26, 0.25), -160, 200)]],
    "7": [[(0.18, 0.08), (0.8, 0.08), (0.42, 0.95)]],
    "8": [_arc((0.5, 0.28), (0.22, 0.22), 90, 450) + _arc((0.5, 0.73), (0.28, 0.23), -90, 270)],
    "9": [[*_arc((0.5, 0.3), (0.25, 0.24), 0, 360), (0.75, 0.3), (0.68, 0.95)]],
}


def written(digit, size=(400, 400), box=(100, 60, 200, 280), pen=14):
    """How much ink each pixel holds, 0 to 1; `box` is left, top, width and height of the digit."""
    picture = Image.new("L", size, 0)
    draw = ImageDraw.Draw(picture)
    left, top, width, height = box
    for stroke in STROKES[digit]:
        points = [(left + width * x, top + height * y) for x, y in stroke]
        draw.line(points, fill=255, width=pen, joint="curve")
        for x, y in (points[0], points[-1]):
            draw.ellipse([x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2], fill=255)
    return np.asarray(picture.filter(ImageFilter.GaussianBlur(0.8)), dtype=float) / 255


def on_paper(ink, paper=PAPER, tone=INK):
    return paper + (tone - paper) * ink


def _grain(levels, strength):
    return levels + np.random.default_rng(0).normal(0, strength, levels.shape)


def _places(ink):
    rows, columns = np.indices(ink.shape)
    return rows / ink.shape[0], columns / ink.shape[1]


def thin_pen(digit):
    return on_paper(written(digit, pen=3))


def hairline_of_a_large_scan(digit):
    return on_paper(written(digit, size=(1200, 1200), box=(300, 250, 500, 700), pen=4), 240, 90)


def thick_pen(digit):
    return on_paper(written(digit, pen=45))


def pale_pencil(digit):
    return _grain(on_paper(written(digit, pen=8), 225, 170), 4)


def grey_paper_with_the_edge_of_a_shadow(digit):
    ink = written(digit)
    rows, columns = _places(ink)
    light = 190 - 110 / (1 + np.exp(-14 * (columns + 0.4 * rows - 0.75)))
    return _grain(light * (1 - 0.75 * ink), 3)


def light_from_one_lamp(digit):
    ink = written(digit)
    rows, columns = _places(ink)
    return _grain((220 - 200 * ((rows - 0.5) ** 2 + (columns - 0.5) ** 2)) * (1 - 0.7 * ink), 2)


def inverted(digit):
    return 255 - on_paper(written(digit))


def chalk_on_a_blackboard(digit):
    return _grain(on_paper(written(digit, pen=18), 45, 215), 8)


def _turned(digit, angle):
    page = Image.fromarray(on_paper(written(digit)).astype(np.uint8))
    return np.asarray(page.rotate(angle, Image.Resampling.BICUBIC, fillcolor=int(PAPER)), dtype=float)


def turned_left(digit):
    return _turned(digit, 15)


def turned_right(digit):
    return _turned(digit, -15)


def photograph_of_3000_pixels(digit):
    return _grain(on_paper(written(digit, size=(3000, 2200), box=(900, 400, 700, 1000), pen=50)), 4)


def small_in_a_corner(digit):
    return _grain(on_paper(written(digit, size=(800, 600), box=(620, 420, 110, 150), pen=9)), 6)


def small_on_a_whole_page(digit):
    """A digit of 2 cm by a ball pen on a page of A4, all of which is in the picture."""
    return _grain(on_paper(written(digit, size=(1500, 2100), box=(640, 1200, 100, 140), pen=4), 220, 60), 6)


def tiny_on_a_whole_page(digit):
    """A digit of 1 cm."""
    return _grain(on_paper(written(digit, size=(1500, 2100), box=(640, 1200, 50, 70), pen=4), 220, 60), 6)


def lines_of_a_notebook(digit):
    page = on_paper(written(digit))
    for row in range(20, 400, 50):
        page[row : row + 2] = np.minimum(page[row : row + 2], PAPER - 70)
    page[:, 30:33] = np.minimum(page[:, 30:33], 150)
    return _grain(page, 3)


def squared_paper(digit):
    page = on_paper(written(digit))
    for place in range(10, 400, 40):
        page[place : place + 2] = np.minimum(page[place : place + 2], PAPER - 55)
        page[:, place : place + 2] = np.minimum(page[:, place : place + 2], PAPER - 55)
    return page


def dark_table_at_the_edge(digit):
    page = on_paper(written(digit, size=(600, 600), box=(200, 120, 200, 300)))
    page[:25], page[:, :18] = 20, 25
    return page


def _on_a_table(page, table, corners):
    """The page as a sheet with these corners, and a table with a grain around it."""
    height, width = page.shape
    mask = Image.new("L", (width, height), 0)
    ImageDraw.Draw(mask).polygon([(width * x, height * y) for x, y in corners], fill=255)
    is_sheet = np.asarray(mask.filter(ImageFilter.GaussianBlur(1)), dtype=float) / 255
    wood = table + np.random.default_rng(1).normal(0, 6, (height, 1))
    return page * is_sheet + wood * (1 - is_sheet)


def sheet_on_a_table(digit):
    page = on_paper(written(digit, size=(640, 480), box=(260, 170, 90, 130), pen=9))
    return _grain(_on_a_table(page, 90, ((0.16, 0.13), (0.83, 0.17), (0.86, 0.88), (0.12, 0.84))), 3)


def small_note_on_a_table(digit):
    page = on_paper(written(digit, size=(640, 480), box=(290, 190, 70, 100), pen=8), 215)
    return _grain(_on_a_table(page, 40, ((0.36, 0.3), (0.64, 0.28), (0.66, 0.7), (0.34, 0.68))), 3)


def lined_sheet_on_a_table(digit):
    page = on_paper(written(digit, size=(640, 480), box=(260, 170, 90, 130), pen=9))
    for row in range(15, 480, 34):
        page[row : row + 2] = np.minimum(page[row : row + 2], PAPER - 70)
    return _grain(_on_a_table(page, 150, ((0.2, 0.15), (0.8, 0.12), (0.82, 0.85), (0.18, 0.86))), 3)


def small_on_a_sheet_on_a_table(digit):
    page = on_paper(written(digit, size=(1600, 1200), box=(740, 500, 60, 84), pen=3))
    return _grain(_on_a_table(page, 150, ((0.2, 0.15), (0.8, 0.12), (0.82, 0.85), (0.18, 0.86))), 3)


def empty_sheet_on_a_table(tone):
    page = np.full((480, 640), PAPER)
    return _grain(_on_a_table(page, tone, ((0.16, 0.13), (0.83, 0.17), (0.86, 0.88), (0.12, 0.84))), 3)


def sheet_that_is_cut_off_below(digit):
    page = on_paper(written(digit, size=(640, 480), box=(260, 170, 90, 130), pen=9))
    return _grain(_on_a_table(page, 40, ((0.16, 0.13), (0.83, 0.17), (0.86, 1.0), (0.12, 1.0))), 3)


def sheet_with_a_cut_digit(digit, visible):
    """Sheet and digit run off below, of which the upper share is visible."""
    page = on_paper(written(digit, size=(640, 480), box=(260, 480 - 130 * visible, 90, 130), pen=12))
    return _grain(_on_a_table(page, 90, ((0.16, 0.13), (0.83, 0.17), (0.86, 1.0), (0.12, 1.0))), 3)


def in_a_box(digit):
    page = Image.fromarray(on_paper(written(digit)).astype(np.uint8))
    ImageDraw.Draw(page).rectangle([50, 25, 350, 370], outline=60, width=3)
    return np.asarray(page, dtype=float)


def in_a_circle(digit):
    page = Image.fromarray(on_paper(written(digit, box=(130, 100, 140, 200))).astype(np.uint8))
    ImageDraw.Draw(page).ellipse([40, 35, 370, 375], outline=60, width=8)
    return np.asarray(page, dtype=float)


def in_a_row_of_cells(digit):
    """As on a printed form."""
    page = Image.fromarray(on_paper(written(digit, (1200, 400), (475, 130, 80, 130))).astype(np.uint8))
    for left in range(120, 1080, 160):
        ImageDraw.Draw(page).rectangle([left, 100, left + 160, 290], outline=60, width=3)
    return np.asarray(page, dtype=float)


def underlined(digit):
    page = Image.fromarray(on_paper(written(digit)).astype(np.uint8))
    ImageDraw.Draw(page).line([30, 365, 360, 355], fill=40, width=12)
    return np.asarray(page, dtype=float)


def scanned_in_a_corner_of_the_glass(digit):
    """A sheet that meets two edges of the picture, beside the black lid."""
    page = np.full((600, 450), 8.0)
    page[:540, :400] = on_paper(written(digit, (400, 540), (40, 370, 100, 140), pen=8))
    return page


def stains(digit):
    page = on_paper(written(digit, size=(600, 600), box=(200, 120, 200, 300)))
    page[560:570, 40:60], page[50:56, 500:520] = 60, 70
    return page


def cut_close(digit):
    return on_paper(written(digit, size=(180, 240), box=(10, 5, 160, 230), pen=16))


def thick_and_cut_close(digit):
    return on_paper(written(digit, size=(260, 430), box=(20, 25, 220, 380), pen=56))


def forty_pixels(digit):
    return on_paper(written(digit, size=(40, 40), box=(8, 5, 24, 30), pen=3))


PAGES = (
    thin_pen,
    hairline_of_a_large_scan,
    thick_pen,
    pale_pencil,
    grey_paper_with_the_edge_of_a_shadow,
    light_from_one_lamp,
    inverted,
    chalk_on_a_blackboard,
    turned_left,
    turned_right,
    photograph_of_3000_pixels,
    small_in_a_corner,
    small_on_a_whole_page,
    lines_of_a_notebook,
    squared_paper,
    dark_table_at_the_edge,
    sheet_on_a_table,
    small_note_on_a_table,
    lined_sheet_on_a_table,
    small_on_a_sheet_on_a_table,
    sheet_that_is_cut_off_below,
    in_a_box,
    in_a_circle,
    in_a_row_of_cells,
    underlined,
    scanned_in_a_corner_of_the_glass,
    stains,
    cut_close,
    thick_and_cut_close,
    forty_pixels,
)


def photograph(page, digit):
    """The page with a digit as a picture."""
    return Image.fromarray(np.clip(page(digit), 0, 255).astype(np.uint8))
