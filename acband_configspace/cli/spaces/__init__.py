"""Parameter spaces in the formats people have: PCS old and new, irace's, ConfigSpace's own."""
