"""What a value of the wrong kind is answered with."""

from jaxtyping import TypeCheckError

from torchcaps.core import UserError

# while the test run checks annotations, the checker may answer before the library does
REFUSED = (UserError, TypeCheckError)
