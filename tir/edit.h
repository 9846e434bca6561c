/* Statements and blocks: making and changing them. Part of tir.h; included from there only. */

tir_stmt tir_new_stmt(struct tir *ir, enum tir_stmt_kind kind);
tir_loop tir_new_loop(struct tir *ir, tir_var var, tir_expr min, tir_expr extent, enum tir_loop_kind kind);
tir_block tir_new_block(struct tir *ir, tir_symbol name);
tir_stmt tir_new_if(struct tir *ir, tir_expr condition); /* with an empty body */
tir_stmt tir_new_store(struct tir *ir, tir_buffer buffer, const tir_expr *indices, tir_expr value);
tir_func tir_new_func(struct tir *ir, tir_symbol name); /* with its TIR_FUNCTION statement */
tir_buffer tir_new_buffer(struct tir *ir, tir_symbol name, tir_type type, const tir_expr *shape, uint32_t rank,
                          tir_symbol scope);
void tir_append(struct tir *ir, tir_stmt parent, enum tir_list list, tir_stmt s);
void tir_insert_before(struct tir *ir, tir_stmt at, tir_stmt s);
void tir_insert_after(struct tir *ir, tir_stmt at, tir_stmt s);
void tir_detach(struct tir *ir, tir_stmt s);                   /* takes s out of its list; s stays usable */
void tir_replace(struct tir *ir, tir_stmt old, tir_stmt with); /* with takes old's place; old is detached */
void tir_wrap(struct tir *ir, tir_stmt s, tir_stmt outer); /* outer takes s's place; s is appended to outer's body */
void tir_move_children(struct tir *ir, tir_stmt from, enum tir_list list, tir_stmt to,
                       enum tir_list to_list); /* appended */
/* Takes s and all below it out for good: marks them dead, appends them to forwards, removes their blocks from the lists
 * by name and buffer. tir_kill_alone: s only; its body is put in its place. */
void tir_kill(struct tir *ir, tir_stmt s);
void tir_kill_alone(struct tir *ir, tir_stmt s);
tir_stmt tir_clone_stmt(struct tir *ir,
                        tir_stmt s); /* deep copy, detached; blocks keep their names; new variables and iterators */

/* Setters of a block keep the lists by name and buffer. Arrays are copied. */
void tir_set_block_name(struct tir *ir, tir_block b, tir_symbol name);
void tir_set_iters(struct tir *ir, tir_block b, const struct tir_iter *iters, uint32_t count);
void tir_set_reads(struct tir *ir, tir_block b, const struct tir_region *regions, uint32_t count);
void tir_set_writes(struct tir *ir, tir_block b, const struct tir_region *regions, uint32_t count);
void tir_set_matches(struct tir *ir, tir_block b, const struct tir_match *matches, uint32_t count);
void tir_add_alloc(struct tir *ir, tir_block b, tir_buffer buffer);
void tir_remove_alloc(struct tir *ir, tir_block b, tir_buffer buffer);
/* A region from minima and extents (rank each, in turn). */
struct tir_region tir_new_region(struct tir *ir, tir_buffer buffer, const tir_expr *ranges);
/* value TIR_NONE removes. The span of a loop, block, allocation or function's attributes. */
void tir_annotate_span(struct tir *ir, struct tir_span *span, tir_symbol key, tir_expr value);
