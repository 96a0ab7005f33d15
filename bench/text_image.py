"""An image with lines of letters, for which text detectors and recognizers give nonzero results."""

import numpy

# Five columns of seven pixels each; the lowest bit is the top pixel.
LETTERS = {"A": (0x7E, 0x11, 0x11, 0x11, 0x7E), "E": (0x7F, 0x49, 0x49, 0x49, 0x41),
           "I": (0x00, 0x41, 0x7F, 0x41, 0x00), "M": (0x7F, 0x02, 0x0C, 0x02, 0x7F),
           "N": (0x7F, 0x04, 0x08, 0x10, 0x7F), "O": (0x3E, 0x41, 0x41, 0x41, 0x3E),
           "S": (0x46, 0x49, 0x49, 0x49, 0x31), "T": (0x01, 0x01, 0x7F, 0x01, 0x01)}


def text_image(height, width, scale, seed):
    """1x3xHEIGHTxWIDTH in -1..1: lines of random letters, dark on light, enlarged SCALE times."""
    random = numpy.random.default_rng(seed)
    page = numpy.zeros((height // scale, width // scale), bool)
    for top in range(2, page.shape[0] - 8, 12):
        for left in range(2, page.shape[1] - 6, 6):
            columns = LETTERS[random.choice(list(LETTERS))]
            if random.random() < 0.85:  # otherwise a space
                page[top:top + 7, left:left + 5] = [[column >> row & 1 for column in columns]
                                                    for row in range(7)]
    large = numpy.kron(page, numpy.ones((scale, scale)))
    image = numpy.ones((height, width), numpy.float32)
    image[:large.shape[0], :large.shape[1]] -= 1.8 * large
    return numpy.broadcast_to(image, (1, 3, height, width)).astype(numpy.float32)
