// Package swarm decides who sends what to whom while several nodes fetch the
// same tree: so that all of them have it in about the time of one copy, of which
// the origin sends about one. It is pure: time and chance are given to it, and
// it does no I/O, which is left to package exchange.
//
// A [Plan] is one fetch. It knows which chunks are here or under way and, from
// answers to polls, which holder has what. [Plan.Next] reports what to ask now;
// what became of each request is told by the other methods.
//
//   - A holder that has part of the tree, or got all of it by a fetch, is asked
//     for one chunk after the other: the rarest first of those it has, as far as
//     is known. Holders with few requests under way come first, then near ones,
//     then chance decides.
//   - A holder that had all of it before (a seed; mostly the origin) is asked for
//     any chunk of those that are wanted, and chooses itself ([Ledger.Pick]): first what
//     nobody was given yet, so that its first copy goes out without duplicates.
//     When all that is wanted was given to others it says so. The fetch gets it
//     from those then, and insists only when nothing else has been possible
//     for some time, three times that of a chunk.
//   - Who failed rests, longer each time. Who is slow has few requests under way,
//     since there are at most a few for each; and what takes four times as long
//     as others do is asked for elsewhere too. Who sent wrong bytes is asked to check its
//     own copy, once, and dropped if that is wrong too.
//   - Older nodes know nothing of this and are asked for one chunk or another,
//     at random.
package swarm
