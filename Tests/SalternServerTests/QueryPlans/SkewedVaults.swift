import Cryptography
import Postgres
import Testing

@testable import SalternServer

extension SkewedDatabase.Owner {
    /// One of the account's vaults. The items of the first one are the account's.
    func vault(_ number: Int = 1) throws -> VaultID { VaultID(try uuid("vault \(account) \(number)")) }

    /// A member of the account's first vault. The account is the first one.
    func member(_ number: Int = 1) throws -> MemberID { MemberID(try uuid("member \(account) 1 \(number)")) }

    /// An invitation to the account's first vault.
    func invitation(_ number: Int = 1) throws -> InvitationID {
        InvitationID(try uuid("invitation \(account) \(number)"))
    }

    func passkey() throws -> PasskeyID {
        try #require(PasskeyID(SHA256.hash(Array("passkey \(account) 1".utf8)).withUnsafeBytes { Array($0) }))
    }

    /// The lane of the account's ordered events, at a destination with a due queue.
    func queue() throws -> EventQueueKey {
        EventQueueKey(accountID: account, destinationID: try destination("first"), lane: EventLane.ordered)
    }

    /// A destination: the queues of `first` are due, and small accounts have parked events at `second`.
    func destination(_ name: String) throws -> DestinationID { DestinationID(try uuid("destination \(name)")) }
}

/// The vaults, passkeys and outgoing events of ``SkewedDatabase``.
///
/// The large account is at its bounds: 100 vaults, of which one has 20,000 items, 100 members, 1,900 former ones and
/// 4,000 entries. Others of its vaults have 32 members. It has 35 queues at each destination.
enum SkewedVaults {
    static let tables = [
        "vaults", "vault_members", "vault_boxes", "vault_entries", "vault_generations", "vault_seals", "memberships",
        "vault_invitations", "vault_items", "vault_deleted_contents", "vault_replaced_contents", "passkeys",
        "used_challenges", "event_queues", "outgoing_events",
    ]

    static let destinations = """
        INSERT INTO saltern.destinations (destination_id, name, audience, kinds, created_at)
        SELECT public.name_of('destination ' || n), n, 'audience',
            '{account.created,receipt.stored,session.opened,session.ended,changes}', '2026-01-01'
        FROM unnest('{first,second}'::text[]) n
        """

    /// The statements that give vaults, passkeys and events to `public.owners`.
    static let fill = vaults + log + contents + rest

    private static let vaults = [
        """
        INSERT INTO saltern.vaults
            (vault_id, owner_account, owner_member, plan, revision, item_count, item_bytes, tombstone_count, kept_count,
            kept_bytes, version_count, version_bytes, head_number, head_hash, key_id, generation_number, created_at)
        SELECT public.name_of('vault ' || account_id || ' ' || n), account_id,
            public.name_of('member ' || account_id || ' ' || n || ' 1'), 'pro', s.items, s.items - s.kept,
            s.items - s.kept, s.kept, s.kept, s.kept, s.kept, s.kept, s.entries, '\\x00', 1, 1, '2026-01-01'
        FROM public.owners CROSS JOIN generate_series(1, things) n CROSS JOIN LATERAL (
            SELECT CASE WHEN things > 1 AND n = 1 THEN 20000 ELSE 1 END AS items,
                CASE WHEN things > 1 AND n = 1 THEN 2000 ELSE 0 END AS kept,
                CASE WHEN things > 1 AND n = 1 THEN 4000 ELSE 1 END AS entries
        ) s
        """,
        """
        INSERT INTO saltern.vault_members (vault_id, member_id, holder, role, since, seen_number)
        SELECT public.name_of('vault ' || account_id || ' ' || n),
            public.name_of('member ' || account_id || ' ' || n || ' ' || k),
            CASE WHEN k = 1 THEN account_id WHEN k <= 100 THEN public.name_of('holder ' || k) END,
            CASE WHEN k = 1 THEN 3 WHEN k <= 100 THEN 2 ELSE 0 END, 1, 1
        FROM public.owners, generate_series(1, things) n,
            generate_series(1, CASE WHEN things = 1 THEN 1 WHEN n = 1 THEN 2000 ELSE 32 END) k
        """,
        """
        INSERT INTO saltern.vault_boxes (vault_id, member_id, generation, box)
        SELECT m.vault_id, m.member_id, 1, '\\x00'
        FROM public.owners o JOIN saltern.vaults a ON a.owner_account = o.account_id
        JOIN saltern.vault_members m ON m.vault_id = a.vault_id AND m.role > 0
        """,
        """
        INSERT INTO saltern.memberships (account_id, vault_id, member_id, owns, joined_at)
        SELECT a.owner_account, a.vault_id, a.owner_member, true, '2026-01-01'
        FROM public.owners o JOIN saltern.vaults a ON a.owner_account = o.account_id
        """,
        """
        INSERT INTO saltern.vault_invitations
            (invitation_id, vault_id, token_hash, preview, key_box, created_at, expires_at)
        SELECT public.name_of('invitation ' || account_id || ' ' || n),
            public.name_of('vault ' || account_id || ' 1'), sha256('t'), '\\x00', '\\x00', '2026-01-01',
            CASE things WHEN 1 THEN '2026-01-01'::timestamptz ELSE '2126-01-01' END + n * interval '1 second'
        FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 64 END) n
        """,
    ]

    private static let log = [
        """
        INSERT INTO saltern.vault_entries (vault_id, number, hash, entry, author, kind, arrived_at)
        SELECT public.name_of('vault ' || account_id || ' 1'), n, '\\x00', '\\x00', m.ids[1 + n % things], 1 + n % 12,
            '2026-01-01'::timestamptz + n * interval '20 seconds'
        FROM public.owners CROSS JOIN LATERAL (
            SELECT array_agg(public.name_of('member ' || account_id || ' 1 ' || k)) AS ids
            FROM generate_series(1, things) k
        ) m CROSS JOIN generate_series(1, CASE things WHEN 1 THEN 1 ELSE 4000 END) n
        """,
        """
        INSERT INTO saltern.vault_generations (vault_id, number, previous_key)
        SELECT public.name_of('vault ' || account_id || ' 1'), n, '\\x00'
        FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 1000 END) n
        """,
        """
        INSERT INTO saltern.vault_seals (vault_id, number, author, sealer, list)
        SELECT public.name_of('vault ' || account_id || ' 1'), n,
            public.name_of('member ' || account_id || ' 1 ' || n % 10 + 1),
            public.name_of('member ' || account_id || ' 1 ' || n / 10 % 10 + 1), '\\x00'
        FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 300 END) n
        """,
    ]

    private static let contents = [
        """
        INSERT INTO saltern.vault_items
            (vault_id, item_id, revision, deleted, collection, format, body, created_at, updated_at)
        SELECT public.name_of('vault ' || o.account_id || ' 1'), i.item_id, i.revision, i.deleted, i.collection, i.format,
            i.body, i.created_at, i.updated_at
        FROM public.owners o JOIN saltern.items i ON i.account_id = o.account_id
        """,
        """
        INSERT INTO saltern.vault_deleted_contents
            (vault_id, item_id, collection, format, body, created_at, expires_at)
        SELECT public.name_of('vault ' || o.account_id || ' 1'), k.item_id, k.collection, k.format, k.body, k.created_at,
            k.expires_at
        FROM public.owners o JOIN saltern.deleted_contents k ON k.account_id = o.account_id
        """,
        """
        INSERT INTO saltern.vault_replaced_contents
            (vault_id, item_id, revision, collection, format, body, created_at, updated_at, replaced_at, expires_at)
        SELECT public.name_of('vault ' || o.account_id || ' 1'), v.item_id, v.revision, v.collection, v.format, v.body,
            v.created_at, v.updated_at, v.replaced_at, v.expires_at
        FROM public.owners o JOIN saltern.replaced_contents v ON v.account_id = o.account_id
        """,
    ]

    /// The first 399 ordered events of the large account are parked, as many as a month without a receiver leaves.
    private static let rest = [
        """
        INSERT INTO saltern.passkeys
            (account_id, credential_id, algorithm, public_key, sign_count, backup_eligible, backed_up, name, logs_in,
            created_at)
        SELECT account_id, sha256(('passkey ' || account_id || ' ' || n)::bytea), -7, sha256('k'), 0, false, false, 'key',
            true, '2026-01-01'
        FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 20 END) n
        """,
        """
        INSERT INTO saltern.used_challenges (account_id, challenge_hash, expires_at)
        SELECT account_id, sha256(('challenge ' || account_id || ' ' || n)::bytea),
            CASE things WHEN 1 THEN '2026-01-01'::timestamptz ELSE '2026-01-02' END + (n - things) * interval '1 second'
        FROM public.owners, generate_series(1, things * 2) n
        """,
        """
        INSERT INTO saltern.event_queues
            (account_id, destination_id, lane, last_number, due_at, latest, ends)
        SELECT account_id, destination_id, CASE
                WHEN n < 3 THEN ('00000000-0000-0000-0000-00000000000' || n)::uuid
                ELSE public.name_of('lane ' || account_id || ' ' || n) END,
            433, CASE WHEN things > 1 OR d.name = 'first'
                THEN '2026-01-01'::timestamptz + row_number() OVER () * interval '1 microsecond' END,
            public.name_of('latest ' || n), n > 0
        FROM public.owners CROSS JOIN saltern.destinations d
        CROSS JOIN generate_series(0, CASE things WHEN 1 THEN 0 ELSE 34 END) n
        """,
        """
        INSERT INTO saltern.outgoing_events
            (account_id, destination_id, lane, number, event_id, kind, occurred_at, waiting_since, parked_at)
        SELECT q.account_id, q.destination_id, q.lane, n,
            public.name_of(concat('event ', q.account_id, q.destination_id, q.lane, n)), 'account.created', '2026-01-01',
            '2026-01-01', CASE WHEN q.many AND n < 400 OR o.things = 1 AND q.due_at IS NULL
                THEN '2026-01-01'::timestamptz END
        FROM public.owners o JOIN (
            SELECT *, lane = '00000000-0000-0000-0000-000000000000' AS is_ordered FROM saltern.event_queues
        ) s ON s.account_id = o.account_id CROSS JOIN LATERAL (SELECT s.*, o.things > 1 AND s.is_ordered AS many) q
        CROSS JOIN generate_series(1, CASE WHEN q.many THEN 433 ELSE 1 END) n
        """,
    ]
}
