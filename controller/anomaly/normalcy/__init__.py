"""What is normal for a series: its category, its period and bounds per time slot."""
