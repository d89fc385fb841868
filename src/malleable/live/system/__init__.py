"""What the operating system offers: CPUs, processes, whole files, sockets with a known other end."""
