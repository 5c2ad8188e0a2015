// Texts that are cut to fit show the whole text to whoever points at them.

/** Gives every cut text below an element its whole text as title, now and when something changes. */
export function titles(selector: string) {
  return (node: HTMLElement) => {
    const look = () => {
      for (const one of node.querySelectorAll<HTMLElement>(selector)) {
        if (one.scrollWidth > one.clientWidth) one.title = (one.closest('.ends') ?? one).textContent.trim();
        else one.removeAttribute('title');
      }
    };
    const resized = new ResizeObserver(look);
    resized.observe(node);
    const changed = new MutationObserver(look);
    changed.observe(node, { childList: true, characterData: true, subtree: true });
    return () => {
      resized.disconnect();
      changed.disconnect();
    };
  };
}
