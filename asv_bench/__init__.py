"""Speed: what airspeed velocity runs, and a report that needs only this folder."""
