# a user who looks at the network on a terminal: a list, a log, a job that is ended, the end.
# Only cells that change are written: what is waited for stands where something else stood.
import fcntl, os, pty, signal, struct, sys, termios
signal.alarm(120)
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
before = termios.tcgetattr(slave)
def start():
    pid = os.fork()
    if pid == 0:
        os.close(master)
        os.login_tty(slave)
        os.execvp(sys.argv[1], sys.argv[1:])
    return pid
def end():
    print("ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print("as it was" if termios.tcgetattr(slave) == before else "the terminal was left changed", flush=True)
pid = start()
said = b""
def until(text):
    global said
    while text not in said:
        said += os.read(master, 65536)
    said = said[said.index(text) + len(text):]
    print("saw", repr(text.decode()), flush=True)
def press(keys): os.write(master, keys)
until(b"\x1b[?1049h")  # the other screen
until(b"counts")
until(b"RUNNING")
press(b"l")
until(b"first")
until(b"second")
press(b"q")
until(b"tab nodes")
press(b"\t")
until(b"node2")
press(b"\t")
until(b"counts")
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
until(b"REASON")
press(b"/counts\r")
press(b"c")
until(b"end job")
press(b"y")
until(b"130")  # its exit code
press(b"q")
until(b"\x1b[?1049l")
end()
# a signal ends it, and leaves the terminal as it was, too
for sig in signal.SIGTERM, signal.SIGQUIT:
    pid = start()
    until(b"\x1b[?1049h")
    until(b"tab nodes")
    os.kill(pid, sig)
    until(b"\x1b[?1049l")
    end()
