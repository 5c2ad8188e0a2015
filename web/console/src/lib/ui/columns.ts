// The columns of lists.

/** A column with a purpose: how wide it is, and whether people may hide it. `end` holds one button, `actions` several,
 *  `sentence` what happened, which others explain. */
export interface Column {
  readonly text: string;
  /** `text` and `wide` share what the others leave. A name or a value that does not fit is cut, and
   *  whole in the title; in a cell of the class `whole` it goes on in the next line. */
  readonly kind: 'text' | 'wide' | 'sentence' | 'state' | 'number' | 'date' | 'time' | 'end' | 'actions';
  /** Names it in what the browser keeps: people may hide it. */
  readonly id?: string;
  /** It is hidden until somebody shows it. */
  readonly hidden?: boolean;
}

export const column = (kind: Column['kind'], text: string, more: { id?: string; hidden?: boolean } = {}): Column => ({
  text,
  kind,
  ...more,
});
