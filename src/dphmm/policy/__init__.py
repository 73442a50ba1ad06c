"""Who must look like whom: graphs, protection, repair, plans."""
