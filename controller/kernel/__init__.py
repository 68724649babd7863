"""What cores share: deadlines, token buckets, spread moments, limited notices."""
