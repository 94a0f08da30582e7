internal import HTTPCore
internal import Postgres

/// Reads the account's passkeys with their public keys. They are few.
struct ExportPasskeys: AccountRead {
    struct Row: ExportedRecord {
        let passkey: StoredPasskey
        let publicKey: [UInt8]
        let signCount: Int64

        let type = "passkey"

        func write(to writer: inout JSONWriter) {
            passkey.writeMembers(to: &writer)
            writer.member("publicKey", base64: publicKey)
            writer.member("signCount", signCount)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(StoredPasskey.columns), k.public_key, k.sign_count FROM saltern.passkeys k
        WHERE k.account_id = \(.account) ORDER BY k.created_at, k.credential_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(passkey: try row.read(StoredPasskey.init), publicKey: try row.next(), signCount: try row.next())
    }
}
