-- Which request has changed an account's row last: a number that it has drawn. What it sends next in the same transaction
-- knows by it whether the change was made, so that a cluster carries out each of the two in one step on one node.
-- compatible with: 8

ALTER TABLE saltern.accounts ADD COLUMN writer bigint;
