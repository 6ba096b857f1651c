"""PartWhole: a benchmark whose classes differ in the relation of parts alone, with its true parse trees."""
