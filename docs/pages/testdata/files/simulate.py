# Ends with 85 when it has written its state, and with 0 at the third step.
import os
import sys

step = 0
if "ZORILLA_RESTART" in os.environ:
    with open("state/step") as f:
        step = int(f.read())
if step == 3:
    print("done")
    sys.exit(0)
os.makedirs("state", exist_ok=True)
with open("state/step", "w") as f:
    f.write(str(step + 1))
sys.exit(85)
