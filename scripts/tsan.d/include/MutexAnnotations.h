// Nothing to call: linking this module is what counts.
