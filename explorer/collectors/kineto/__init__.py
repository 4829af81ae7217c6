"""Import of Kineto and Chrome trace JSON: text in chunks, columns, links, tables."""
