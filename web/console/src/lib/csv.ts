// Tables as files that spreadsheets open.

/**
 * A line of a CSV file. Spreadsheets run what looks like a formula: an apostrophe in front of it makes it text. The
 * quotes keep commas and line breaks inside a cell.
 */
export function csvLine(cells: readonly string[]): string {
  return (
    cells.map((cell) => `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`).join(',') + '\r\n'
  );
}

/** Gives a text to the person as a file. The mark at its beginning tells spreadsheets that it is UTF-8. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob(['\uFEFF', text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
