// Short messages about what was done. A screen reader reads them out.

export interface Toast {
  readonly id: number;
  readonly text: string;
}

let next = 0;
export const toasts = $state({ shown: [] as readonly Toast[] });

/** Says that something was done. */
export function toast(text: string): void {
  const id = next++;
  toasts.shown = [...toasts.shown, { id, text }];
  setTimeout(() => (toasts.shown = toasts.shown.filter((shown) => shown.id !== id)), 6000);
}
