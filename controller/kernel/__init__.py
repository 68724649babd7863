"""What every core is made with: deadlines, token buckets, spread moments, limited notices."""
