internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A code on paper that replaces a one-time code once: 20 base32 digits, 100 random bits.
struct SecondFactorRecoveryCode: Sendable {
    static let digitCount = 20
    /// The number of codes of an account.
    static let setSize = 10
    private static let groupSize = 4

    /// ASCII characters of the base32 alphabet.
    private let digits: SecureBytes

    static func random() -> SecondFactorRecoveryCode {
        let random = SecureRandom.secureBytes(digitCount)
        let digits = SecureBytes(count: digitCount) { digits in
            // 256 is a multiple of 32, so all digits are equally likely.
            random.withUnsafeBytes { random in
                for (index, byte) in random.enumerated() { digits[index] = Base32.alphabet[Int(byte & 31)] }
            }
        }
        return SecondFactorRecoveryCode(digits: digits)
    }

    /// Draws a new set.
    static func randomSet() -> [SecondFactorRecoveryCode] { (0..<setSize).map { _ in random() } }

    private init(digits: SecureBytes) {
        self.digits = digits
    }

    /// Accepts 20 digits without separators, in either case. 0, 1 and 8, which base32 lacks, are read as the similar
    /// letters. Nil for other text.
    init?(_ text: some Collection<UInt8>) {
        guard text.count == Self.digitCount, text.allSatisfy({ Base32.alphabet.contains(Self.digit($0)) }) else {
            return nil
        }
        digits = SecureBytes(count: Self.digitCount) { digits in
            for (index, typed) in text.enumerated() { digits[index] = Self.digit(typed) }
        }
    }

    private static func digit(_ typed: UInt8) -> UInt8 {
        switch typed {
        case UInt8(ascii: "0"): UInt8(ascii: "O")
        case UInt8(ascii: "1"): UInt8(ascii: "I")
        case UInt8(ascii: "8"): UInt8(ascii: "B")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): typed - 0x20
        default: typed
        }
    }

    /// Writes the code for its owner: `ABCD-EFGH-…`.
    func write(to writer: inout JSONWriter) {
        writer.string(plainCapacity: Self.digitCount * 2) { target in
            var count = 0
            digits.withUnsafeBytes { digits in
                for (index, digit) in digits.enumerated() {
                    if index > 0, index % Self.groupSize == 0 {
                        target[count] = UInt8(ascii: "-")
                        count += 1
                    }
                    target[count] = digit
                    count += 1
                }
            }
            return count
        }
    }

    /// Returns the stored hash: SHA-256 of the account's id and the digits. The id prevents an attack on the codes of
    /// many accounts at once.
    func hash(for account: AccountID) -> SecondFactorRecoveryCodeHash {
        var hash = SHA256.Incremental()
        hash.update(account.uuid.bytes)
        hash.update(digits)
        return SecondFactorRecoveryCodeHash(hash.finalize())
    }
}

/// The stored hash of a recovery code.
struct SecondFactorRecoveryCodeHash: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// `POST /v1/account/totp/recovery-codes`: replaces the remaining recovery codes by ten new ones.
struct RenewRecoveryCodes: AccountEndpoint {
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .renewRecoveryCodes)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let account = proven.accountID
        let codes = SecondFactorRecoveryCode.randomSet()
        try await authorization.change(as: proven) { transaction in
            let event = RecordSecurityEvent(accountID: account, kind: .totpCodesRenewed, now: proven.now)
            let (_, stored, _, _) = try await transaction.execute(
                RemoveSecondFactorCodes(accountID: account),
                InsertSecondFactorCodes(accountID: account, codes: codes.map { $0.hash(for: account) }), event,
                DropOldEvents(after: event))
            guard !stored.isEmpty else { throw SecondFactorProblem.isNotEnabled }
        }
        return .recoveryCodes(codes)
    }
}

extension Response {
    /// Returns a set of recovery codes as a reply.
    static func recoveryCodes(_ codes: [SecondFactorRecoveryCode]) -> Response {
        .json { writer in
            writer.object { writer in
                writer.array("recoveryCodes") { writer in
                    for code in codes { code.write(to: &writer) }
                }
            }
        }
    }
}

/// Removes the account's remaining recovery codes.
struct RemoveSecondFactorCodes: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)"
}

/// Stores recovery codes if there is a confirmed second factor. Returns a row for each.
struct InsertSecondFactorCodes: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let codes: [SecondFactorRecoveryCodeHash]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.second_factor_codes (account_id, code_hash)
        SELECT f.account_id, h.code_hash
        FROM saltern.second_factors f CROSS JOIN unnest(\(\.codes)::bytea[]) AS h (code_hash)
        WHERE f.account_id = \(\.accountID) AND f.confirmed_at IS NOT NULL
        RETURNING account_id
        """
}
