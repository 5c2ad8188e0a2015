// Uses grpc-web in Node, which needs a package for XMLHttpRequest: one that has binary answers, or one that shows the text that has arrived
// before all has.
import xhr2 from "xhr2";
import { XMLHttpRequest } from "xmlhttprequest";

import { load } from "./root.mjs";

const [base, token, format] = process.argv.slice(2);
const root = await load(); // protobuf.js would read files with it, too
globalThis.XMLHttpRequest = format === "text" ? XMLHttpRequest : xhr2;
const { tryAll } = await import("./grpc-web.js");

console.log(JSON.stringify(await tryAll(root, { base, token, format })));
process.exit(0);
