"""AC-Band and its rivals behind one interface, each written from its paper."""
