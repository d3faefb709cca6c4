import json, os, subprocess

step, total = 0, 0
if "ZORILLA_RESTART" in os.environ:
    step, total = json.load(open("state/now.json"))
os.makedirs("state", exist_ok=True)
while step < 1000:
    total, step = total + step**2, step + 1
    if step % 100 == 0:
        with open("state/now.json", "w") as f:
            json.dump([step, total], f)
        subprocess.run(["zorilla", "checkpoint", "state"], check=True)
print("the sum is", total)
