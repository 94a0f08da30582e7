extension Vault {
    /// Fetches a chunk and seals it with the key of a rotation.
    /// - Returns: nil when the server no longer has it.
    func resealedChunk(
        _ chunk: StoredChunk, from old: Sealer, to new: Sealer, _ opened: Opened
    ) async throws(VaultError) -> StagedItem? {
        let state = try await call { api throws(APIError) in
            try await LiveSyncServer(api: api, token: opened.token, retries: Retries(attempts: 1)).item(chunk.id)
        }
        guard let state, let content = state.content else { return nil }
        guard let plain = try? old.openChunk(content, chunk.id), let sealed = try? new.sealChunk(plain, chunk.id) else {
            throw .unreadable
        }
        return StagedItem(
            id: chunk.id, ifRevision: state.revision, format: sealed.format, title: nil, body: sealed.body.bytes)
    }
}
