"""Many ranks as one: matched communication, aligned clocks, who waited for whom, and why."""
