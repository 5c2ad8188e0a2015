// Asks whether what was typed may be lost, with a dialog of the console.

const state = $state({ answer: undefined as ((discard: boolean) => void) | undefined });

/** Whether it is asked now. */
export const discard = {
  get asked() {
    return state.answer !== undefined;
  },
  /** The answer of the person. */
  answer(yes: boolean) {
    const to = state.answer;
    state.answer = undefined;
    to?.(yes);
  },
};

/** Asks, and gives the answer. Asked again meanwhile, the first question is answered with no. */
export function mayDiscard(): Promise<boolean> {
  discard.answer(false);
  return new Promise((resolve) => (state.answer = resolve));
}
