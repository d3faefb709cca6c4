/*
 * The client half of PMI-1 as a shared library: what an MPI program asks its node
 * for. Open MPI's flux component loads it by FLUX_PMI_LIBRARY_PATH and looks these
 * functions up; MPICH speaks the same by itself. One line is asked over the
 * inherited socket PMI_FD, one is answered:
 *
 *     cmd=put kvsname=K key=A value=B   ->   cmd=put_result rc=0 msg=success
 *
 * A node that closes the socket ends its ranks, so whoever loses it says so once
 * and exits. Everything else that fails is an error code of the function, and a
 * line on stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum {
	PMI_SUCCESS = 0,
	PMI_FAIL = -1,
	PMI_ERR_INIT = 1,
	PMI_ERR_INVALID_ARG = 3,
};

enum {
	MOST_LINE = 1 << 20,  /* bytes of an answer */
	MOST_RANKS = 1 << 20, /* of a process mapping */
};

/* The source that this was built of, as a test finds it. */
PUBLIC const char zorilla_mpi_source[] = "zorilla-mpi-source sha256:" SOURCE;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1, rank = 0, size = 1, up = 0;
static int longest_name = 256, longest_key = 64, longest_value = 4096;
static char *name; /* of the key-value space */

/* What was read and not yet used is held[used..have). */
static char *held;
static size_t used, have, room;

static void say(const char *format, ...) {
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "zorilla: mpi: rank %d: %s\n", rank, text);
}

static void __attribute__((noreturn)) lost(const char *why) {
	say("lost the connection to the node: %s", why);
	_exit(1);
}

static void ask(const char *line, size_t n) {
	while (n > 0) {
		ssize_t k = send(fd, line, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			lost(strerror(errno));
		line += k;
		n -= (size_t)k;
	}
}

/* The next line of the node, without its end; good until the next call. */
static char *answer(void) {
	size_t seen = 0;
	for (;;) {
		char *end = have > used + seen ? memchr(held + used + seen, '\n', have - used - seen) : NULL;
		if (end) {
			char *line = held + used;
			*end = 0;
			used = (size_t)(end - held) + 1;
			return line;
		}
		if (used > 0) {
			memmove(held, held + used, have - used);
			have -= used;
			used = 0;
		}
		seen = have;
		if (have == room) {
			size_t more = room ? 2 * room : 8192;
			char *grown = more > MOST_LINE ? NULL : realloc(held, more);
			if (!grown)
				lost("an answer is too long");
			held = grown;
			room = more;
		}
		ssize_t k = recv(fd, held + have, room - have, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			lost(k < 0 ? strerror(errno) : "it was closed");
		have += (size_t)k;
	}
}

/* The value of a key in a line, with its length; a value named "value" runs to the
 * end of the line. NULL if there is none. */
static const char *field(const char *line, const char *key, size_t *n) {
	size_t k = strlen(key);
	while (*line) {
		line += strspn(line, " ");
		size_t word = strcspn(line, " =");
		if (line[word] != '=') {
			line += word;
			continue;
		}
		const char *value = line + word + 1;
		int rest = word == 5 && !strncmp(line, "value", 5);
		*n = rest ? strlen(value) : strcspn(value, " ");
		if (word == k && !strncmp(line, key, k))
			return value;
		line = value + *n;
	}
	return NULL;
}

static int number(const char *line, const char *key, int otherwise) {
	size_t n;
	const char *v = field(line, key, &n);
	return v && n > 0 ? (int)strtol(v, NULL, 10) : otherwise;
}

/* Asks one thing and returns the answer, or NULL if it is a no. */
static const char *call(const char *want, const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *line = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!line)
		return NULL;
	va_start(args, format);
	vsnprintf(line, (size_t)n + 1, format, args);
	va_end(args);
	ask(line, (size_t)n);
	free(line);

	const char *reply = answer();
	size_t k;
	const char *cmd = field(reply, "cmd", &k);
	if (!cmd || k != strlen(want) || strncmp(cmd, want, k)) {
		say("the node answered \"%.80s\" where %s was expected", reply, want);
		return NULL;
	}
	return number(reply, "rc", 0) ? NULL : reply;
}

/* Copies a text that ends before a blank; not if it does not fit. */
static int copy(char *to, int room, const char *from, size_t n) {
	if (!to || room <= 0 || n >= (size_t)room)
		return PMI_ERR_INVALID_ARG;
	memcpy(to, from, n);
	to[n] = 0;
	return PMI_SUCCESS;
}

/* Words of a line must not hold what ends them. */
static int word(const char *s, int most) {
	return s && *s && strlen(s) <= (size_t)most && !strpbrk(s, " \n=");
}

static int from_environment(const char *key, int least) {
	const char *v = getenv(key);
	char *end;
	long n;
	if (!v || !*v)
		return -1;
	n = strtol(v, &end, 10);
	return *end || n < least || n > MOST_RANKS ? -1 : (int)n;
}

static int begin(void) {
	if (!getenv("PMI_FD")) {
		/* A program that was started outside a gang is one of its own. */
		name = strdup("alone");
		return name ? PMI_SUCCESS : PMI_FAIL;
	}
	int s = from_environment("PMI_FD", 0), kind;
	int r = from_environment("PMI_RANK", 0), n = from_environment("PMI_SIZE", 1);
	socklen_t len = sizeof kind;
	if (s < 0 || r < 0 || n < 1 || r >= n) {
		say("PMI_FD, PMI_RANK and PMI_SIZE are not those of a rank");
		return PMI_FAIL;
	}
	rank = r;
	if (getsockopt(s, SOL_SOCKET, SO_TYPE, &kind, &len) || kind != SOCK_STREAM) {
		say("descriptor %d of PMI_FD is not the node's socket: what started the program closed it", s);
		return PMI_FAIL;
	}
	fd = s;
	size = n;
	const char *reply = call("response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!reply)
		return PMI_FAIL;
	if (!(reply = call("maxes", "cmd=get_maxes\n")))
		return PMI_FAIL;
	longest_name = number(reply, "kvsname_max", longest_name);
	longest_key = number(reply, "keylen_max", longest_key);
	longest_value = number(reply, "vallen_max", longest_value);
	if (!(reply = call("my_kvsname", "cmd=get_my_kvsname\n")))
		return PMI_FAIL;
	size_t k;
	const char *v = field(reply, "kvsname", &k);
	name = v ? strndup(v, k) : NULL;
	return name ? PMI_SUCCESS : PMI_FAIL;
}

#define LOCKED(type, expression)                                                         \
	pthread_mutex_lock(&lock);                                                           \
	type result_ = (expression);                                                         \
	pthread_mutex_unlock(&lock);                                                         \
	return result_

static int give(int *to, int value) {
	if (!to)
		return PMI_ERR_INVALID_ARG;
	*to = value;
	return PMI_SUCCESS;
}

static int init(int *spawned) {
	if (!up && begin() != PMI_SUCCESS)
		return PMI_FAIL;
	up = 1;
	return give(spawned, 0);
}

static int finalize(void) {
	if (!up)
		return PMI_ERR_INIT;
	up = 0;
	return fd < 0 || call("finalize_ack", "cmd=finalize\n") ? PMI_SUCCESS : PMI_FAIL;
}

static int barrier(void) {
	if (!up)
		return PMI_ERR_INIT;
	return fd < 0 || call("barrier_out", "cmd=barrier_in\n") ? PMI_SUCCESS : PMI_FAIL;
}

static int put(const char *space, const char *key, const char *value) {
	if (!up)
		return PMI_ERR_INIT;
	if (!word(space, longest_name) || !word(key, longest_key) || !value || strlen(value) > (size_t)longest_value || strchr(value, '\n'))
		return PMI_ERR_INVALID_ARG;
	if (fd < 0)
		return PMI_SUCCESS;
	return call("put_result", "cmd=put kvsname=%s key=%s value=%s\n", space, key, value) ? PMI_SUCCESS : PMI_FAIL;
}

static int get(const char *space, const char *key, char *value, int room) {
	size_t n;
	if (!up)
		return PMI_ERR_INIT;
	if (!word(space, longest_name) || !word(key, longest_key))
		return PMI_ERR_INVALID_ARG;
	const char *reply = fd < 0 ? NULL : call("get_result", "cmd=get kvsname=%s key=%s\n", space, key);
	const char *v = reply ? field(reply, "value", &n) : NULL;
	return v ? copy(value, room, v, n) : PMI_FAIL;
}

static int universe(int *to) {
	if (!up)
		return PMI_ERR_INIT;
	const char *reply = fd < 0 ? NULL : call("universe_size", "cmd=get_universe_size\n");
	return give(to, reply ? number(reply, "size", size) : size);
}

static int appnum(int *to) {
	if (!up)
		return PMI_ERR_INIT;
	const char *reply = fd < 0 ? NULL : call("appnum", "cmd=get_appnum\n");
	return give(to, reply ? number(reply, "appnum", 0) : 0);
}

/* Calls each with the ranks of one node after the other, as the mapping has them:
 * "(vector,(first,count,per node),...)". */
static int each(const char *mapping, int (*f)(int r, int node, void *), void *arg) {
	int r = 0, first, count, per, length;
	for (const char *p = strchr(mapping, ','); p && *p; p += length) {
		length = 0;
		if (sscanf(p, ",(%d,%d,%d)%n", &first, &count, &per, &length) != 3 || length == 0)
			break;
		for (int i = 0; i < count; i++)
			for (int j = 0; j < per; j++, r++)
				if (r >= size || f(r, first + i, arg))
					return r;
	}
	return r;
}

struct clique {
	int node;   /* mine */
	int n;      /* ranks found */
	int *ranks; /* NULL: only counted */
	int room;
};

static int mine(int r, int node, void *arg) {
	struct clique *c = arg;
	if (r == rank)
		c->node = node;
	return r == rank;
}

static int same(int r, int node, void *arg) {
	struct clique *c = arg;
	if (node != c->node)
		return 0;
	if (c->ranks && c->n < c->room)
		c->ranks[c->n] = r;
	c->n++;
	return 0;
}

/* The ranks on this one's node: with an unknown mapping, only itself. */
static int clique(struct clique *c) {
	if (!up)
		return PMI_ERR_INIT;
	size_t n = 0;
	c->node = -1;
	const char *reply = fd < 0 ? NULL : call("get_result", "cmd=get kvsname=%s key=PMI_process_mapping\n", name);
	const char *mapping = reply ? field(reply, "value", &n) : NULL;
	if (mapping)
		each(mapping, mine, c);
	if (c->node >= 0)
		each(mapping, same, c);
	else
		same(rank, -1, c);
	return c->ranks && c->room < c->n ? PMI_ERR_INVALID_ARG : PMI_SUCCESS;
}

static int clique_size(int *to) {
	struct clique c = {0};
	int rc = clique(&c);
	return rc ? rc : give(to, c.n);
}

static int clique_ranks(int *to, int room) {
	struct clique c = {.ranks = to, .room = room};
	return to ? clique(&c) : PMI_ERR_INVALID_ARG;
}

static int my_name(char *to, int room) { return up ? copy(to, room, name, strlen(name)) : PMI_ERR_INIT; }

static int end(int code, const char *why) {
	char line[48];
	if (why && *why && strcmp(why, "N/A")) /* which is Open MPI's word for nothing */
		say("%.400s", why);
	if (fd >= 0)
		ask(line, (size_t)snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", code));
	_exit(code);
}

PUBLIC int PMI_Init(int *spawned) { LOCKED(int, init(spawned)); }
PUBLIC int PMI_Initialized(int *yes) { LOCKED(int, give(yes, up)); }
PUBLIC int PMI_Finalize(void) { LOCKED(int, finalize()); }
PUBLIC int PMI_Get_size(int *to) { LOCKED(int, up ? give(to, size) : PMI_ERR_INIT); }
PUBLIC int PMI_Get_rank(int *to) { LOCKED(int, up ? give(to, rank) : PMI_ERR_INIT); }
PUBLIC int PMI_Get_universe_size(int *to) { LOCKED(int, universe(to)); }
PUBLIC int PMI_Get_appnum(int *to) { LOCKED(int, appnum(to)); }
PUBLIC int PMI_Barrier(void) { LOCKED(int, barrier()); }
/* Others may hold the lock for ever: in a barrier that the gang's end leaves open. */
PUBLIC int PMI_Abort(int code, const char *why) { return end(code, why); }
PUBLIC int PMI_KVS_Get_my_name(char *to, int room) { LOCKED(int, my_name(to, room)); }
PUBLIC int PMI_Get_id(char *to, int room) { LOCKED(int, my_name(to, room)); }
PUBLIC int PMI_Get_kvs_domain_id(char *to, int room) { LOCKED(int, my_name(to, room)); }
PUBLIC int PMI_Get_id_length_max(int *to) { LOCKED(int, give(to, longest_name)); }
PUBLIC int PMI_KVS_Get_name_length_max(int *to) { LOCKED(int, give(to, longest_name)); }
PUBLIC int PMI_KVS_Get_key_length_max(int *to) { LOCKED(int, give(to, longest_key)); }
PUBLIC int PMI_KVS_Get_value_length_max(int *to) { LOCKED(int, give(to, longest_value)); }
PUBLIC int PMI_KVS_Put(const char *space, const char *key, const char *value) { LOCKED(int, put(space, key, value)); }
PUBLIC int PMI_KVS_Commit(const char *space) {
	(void)space; /* what was put is the node's at once */
	return PMI_SUCCESS;
}
PUBLIC int PMI_KVS_Get(const char *space, const char *key, char *value, int room) { LOCKED(int, get(space, key, value, room)); }
PUBLIC int PMI_Get_clique_size(int *to) { LOCKED(int, clique_size(to)); }
PUBLIC int PMI_Get_clique_ranks(int *to, int room) { LOCKED(int, clique_ranks(to, room)); }
