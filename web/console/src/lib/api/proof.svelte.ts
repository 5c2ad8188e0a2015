// Proving again who one is, where an operation asks for it. The dialog (dialog/ProofDialog.svelte) shows what is open
// here.

export type ProofReason = 'RECENT_PROOF_REQUIRED' | 'SECOND_FACTOR_REQUIRED';

/** The proof that a request waits for. */
export const proof = $state({ reason: undefined as ProofReason | undefined });

let answer: ((proven: boolean) => void) | undefined;
let waiting: Promise<boolean> | undefined;

/** Asks for a proof. Several requests wait for the same one. */
export function prove(reason: ProofReason): Promise<boolean> {
  proof.reason = reason;
  waiting ??= new Promise<boolean>((resolve) => (answer = resolve));
  return waiting;
}

/** Ends the dialog: with a proof, or without. */
export function endProof(proven: boolean): void {
  proof.reason = undefined;
  waiting = undefined;
  answer?.(proven);
}
