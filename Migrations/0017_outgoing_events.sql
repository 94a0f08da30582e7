-- Outgoing events: destinations, queues, and events until they are delivered.
-- compatible with: 8
--
-- On Citus, `destinations` is a reference table, the other two are distributed by account_id. Their rows may outlive the
-- account: its last event is that of its deletion.

-- Programs of the operator that events are sent to, or that fetch them.
CREATE TABLE saltern.destinations (
    destination_id uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    audience text COLLATE "C" NOT NULL,
    -- Null when a service of the audience fetches the events.
    url text COLLATE "C",
    -- The kinds of events that it gets.
    kinds text[] NOT NULL,
    -- Sealed by the master key. The previous one also signs, until its time is over.
    secret bytea,
    previous_secret bytea,
    previous_until timestamptz,
    created_at timestamptz NOT NULL,
    -- Since then nothing is stored for it or sent to it.
    disabled_at timestamptz
);
CREATE UNIQUE INDEX destinations_by_name ON saltern.destinations (name);

-- The events of one account for one destination in one lane: a lane is delivered in the order of its numbers, by one node at
-- a time. The nil UUID is the lane of account events. A row of that lane keeps its number when all is delivered.
CREATE TABLE saltern.event_queues (
    account_id uuid NOT NULL,
    destination_id uuid NOT NULL,
    lane uuid NOT NULL,
    last_number bigint NOT NULL,
    -- When the next attempt is due; null when there is nothing to deliver. A lease moves it to its end.
    due_at timestamptz,
    -- Names the latest lease, and the last event that it covers.
    lease uuid,
    leased_number bigint NOT NULL DEFAULT 0,
    -- A random number of the latest event's writer.
    latest uuid NOT NULL,
    -- Failed attempts since the last success.
    attempts integer NOT NULL DEFAULT 0,
    -- Whether the row is removed when all is delivered.
    ends boolean NOT NULL DEFAULT false,
    PRIMARY KEY (account_id, destination_id, lane)
);
CREATE INDEX event_queues_by_due ON saltern.event_queues (destination_id, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE saltern.outgoing_events (
    account_id uuid NOT NULL,
    destination_id uuid NOT NULL,
    lane uuid NOT NULL,
    number bigint NOT NULL,
    -- Another one for each destination, and the same at each attempt.
    event_id uuid NOT NULL,
    kind text COLLATE "C" NOT NULL,
    session_id uuid,
    revision bigint,
    occurred_at timestamptz NOT NULL,
    -- The time of its attempts begins here: when it occurred, or was retried by an admin.
    waiting_since timestamptz NOT NULL,
    -- Since then it is no longer attempted.
    parked_at timestamptz,
    PRIMARY KEY (account_id, destination_id, lane, number)
);
CREATE INDEX outgoing_events_by_id ON saltern.outgoing_events (destination_id, event_id);
CREATE INDEX outgoing_events_by_age ON saltern.outgoing_events (destination_id, waiting_since) WHERE parked_at IS NULL;
CREATE INDEX outgoing_events_by_parking ON saltern.outgoing_events (destination_id, parked_at) WHERE parked_at IS NOT NULL;

-- Rows come and go: vacuum comes early.
ALTER TABLE saltern.event_queues SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE saltern.outgoing_events SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Admins create and remove destinations as the schema's owner. A server disables one, and renews what the master key has sealed.
GRANT SELECT ON saltern.destinations TO saltern_server;
GRANT UPDATE (disabled_at, secret, previous_secret) ON saltern.destinations TO saltern_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.event_queues, saltern.outgoing_events TO saltern_server;
