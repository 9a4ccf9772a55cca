"""AC-Band and its competitors behind one interface, each written from its paper."""
