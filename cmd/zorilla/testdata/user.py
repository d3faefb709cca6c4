# a user at a terminal: a shell, a size that changes, Ctrl-C, the end
import fcntl, os, pty, signal, struct, sys, termios
signal.alarm(120)
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
size = lambda r, c: fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", r, c, 0, 0))
size(40, 100)
said = b""
def until(text):
    global said
    while text not in said:
        said += os.read(fd, 4096)
    print(said.decode(), end="")
    said = b""
def say(line): os.write(fd, line)
say(b"PS1='ne''xt> '; stty -echo; echo 'rea''dy'\n")
until(b"ready\r\n")
say(b"stty size; echo rank=$RANK; echo 'do''ne'\n")
until(b"done\r\n")
size(50, 120)
say(b"until test \"$(stty size)\" = '50 120'; do sleep 0.05; done; stty size; echo 'do''ne'\n")
until(b"done\r\n")
# what says it has the terminal: a second Ctrl-C could take what is typed after it
say(b"sh -c 'echo sl\"\"eeps; exec sleep 1000'\n")
until(b"sleeps\r\n")
say(b"\x03")
until(b"next> ")
say(b"echo interrupted $?\n")
until(b"interrupted 130\r\n")
say(b"exit 7\n")
try:
    while True:
        os.read(fd, 4096)
except OSError:
    pass
print("\nended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
