"""Files on servers, by HTTP and FTP, read like files on disk."""
