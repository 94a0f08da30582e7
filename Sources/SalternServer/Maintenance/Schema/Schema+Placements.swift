public import Postgres

extension Schema {
    /// The placement of each table on a cluster. Rows that one request reads together are on one node.
    ///
    /// Each table has an entry, because other tables would stay on the coordinator, invisible to other nodes.
    public static var placements: [TablePlacement] {
        [
            TablePlacement("installation", .everywhere),
            TablePlacement("plans", .everywhere),
            // Few rows, found by code, by id and by the account that used one.
            TablePlacement("invites", .everywhere),
            TablePlacement("destinations", .everywhere),
            TablePlacement("services", .everywhere),
            TablePlacement("schema_migrations", .onCoordinator),
            // One chain with one end.
            TablePlacement("audit_log", .onCoordinator),
            TablePlacement("audit_head", .onCoordinator),
            TablePlacement("logins", .spread(by: "userid", with: "logins")),
            TablePlacement("failed_attempts", .spread(by: "subject", with: "failed_attempts")),
            TablePlacement("shares", .spread(by: "share_id", with: "shares")),
            TablePlacement("accounts", ofAccount),
            TablePlacement("sessions", ofAccount),
            TablePlacement("items", ofAccount),
            TablePlacement("deleted_contents", ofAccount),
            TablePlacement("replaced_contents", ofAccount),
            TablePlacement("recoveries", ofAccount),
            TablePlacement("kept_keyrings", ofAccount),
            TablePlacement("second_factors", ofAccount),
            TablePlacement("second_factor_codes", ofAccount),
            TablePlacement("passkeys", ofAccount),
            TablePlacement("used_challenges", ofAccount),
            TablePlacement("rotations", ofAccount),
            TablePlacement("rotation_items", ofAccount),
            TablePlacement("receipts", ofAccount),
            TablePlacement("security_events", ofAccount),
            TablePlacement("account_shares", ofAccount),
            TablePlacement("event_queues", ofAccount),
            TablePlacement("outgoing_events", ofAccount),
            TablePlacement("memberships", ofAccount),
            TablePlacement("vaults", ofVault),
            TablePlacement("vault_members", ofVault),
            TablePlacement("vault_entries", ofVault),
            TablePlacement("vault_boxes", ofVault),
            TablePlacement("vault_generations", ofVault),
            TablePlacement("vault_seals", ofVault),
            TablePlacement("vault_items", ofVault),
            TablePlacement("vault_deleted_contents", ofVault),
            TablePlacement("vault_replaced_contents", ofVault),
            TablePlacement("vault_invitations", .spread(by: "invitation_id", with: "vault_invitations")),
        ]
    }

    private static let ofAccount = TablePlacement.Kind.spread(by: "account_id", with: "accounts")
    private static let ofVault = TablePlacement.Kind.spread(by: "vault_id", with: "accounts")
}
