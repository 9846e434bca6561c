/* What was counted, of all jobs, as a table and a line of totals. */
#include "random.h"

void add_tally(struct tally *into, const struct tally *from) {
  for (enum vm_kind kind = 0; kind < VM_KIND_COUNT; kind++) {
    into->proposed[kind] += from->proposed[kind];
    into->accepted[kind] += from->accepted[kind];
    into->refused[kind] += from->refused[kind];
  }
  into->sequences += from->sequences, into->length += from->length;
  into->judged += from->judged, into->too_large += from->too_large;
  into->lowered += from->lowered, into->built += from->built, into->unbuilt += from->unbuilt;
  into->emitted += from->emitted, into->unemitted += from->unemitted;
  into->replayed += from->replayed, into->unchanged_texts += from->unchanged_texts;
  into->unsafe += from->unsafe, into->unfinished += from->unfinished;
  into->failures += from->failures;
}

typedef unsigned long long number; /* as printf takes it */

void print_tally(const struct tally *t) {
  number accepted = 0, refused = 0;
  printf("%-24s %10s %10s %10s\n", "kind", "proposed", "accepted", "refused");
  for (enum vm_kind kind = 0; kind < VM_KIND_COUNT; kind++) {
    printf("%-24s %10llu %10llu %10llu\n", vm_kind_info(kind)->name, (number)t->proposed[kind],
           (number)t->accepted[kind], (number)t->refused[kind]);
    accepted += t->accepted[kind], refused += t->refused[kind];
  }
  double mean = t->sequences ? (double)t->length / (double)t->sequences : 0;
  printf(
      "mean accepted length %.2f; judged: %llu by the interpreter (%llu too large), %llu lowered, %llu compiled (%llu "
      "of unknown sizes not), %llu also as C source (%llu have none), %llu with a For that cannot be ended; %llu "
      "changed without regard to what is computed; %llu traces replayed; %llu "
      "texts compared after refusals\n",
      mean, (number)t->judged, (number)t->too_large, (number)t->lowered, (number)t->built, (number)t->unbuilt,
      (number)t->emitted, (number)t->unemitted, (number)t->unfinished, (number)t->unsafe, (number)t->replayed,
      (number)t->unchanged_texts);
  printf("totals: %llu sequences, %llu instructions performed, %llu refused, %llu failures\n", (number)t->sequences,
         accepted, refused, (number)t->failures);
}
