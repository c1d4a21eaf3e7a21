// The gateway under test, and what is on its demo chain.

import fs from "node:fs";

export const url = process.env.CHAINGATE_URL;
export const facts = JSON.parse(fs.readFileSync(process.env.CHAINGATE_FACTS, "utf8"));

export const noKeyUrl = url.slice(0, url.lastIndexOf("/"));
export const wrongKeyUrl = `${noKeyUrl}/nobody`;

export const { Tour: tour, Token: token, Chatter: chatter } = facts.contracts;

// Sixty blocks with 200 logs each: 12,000 are too many, fifty blocks have exactly as many as one query may.
export const chatterFrom = facts.blocks["chatter-begins"].number;
export const chatterTo = chatterFrom + 59;
export const chatterFits = chatterFrom + 49;
