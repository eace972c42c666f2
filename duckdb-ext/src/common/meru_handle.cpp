#include "common/meru_handle.hpp"

#include "common/s3_secrets.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/storage/buffer_manager.hpp"
#include "functions/merutable_functions.hpp"

namespace duckdb {

MeruDatabase::MeruDatabase(MeruHandle *handle) : handle(handle) {
}

MeruDatabase::~MeruDatabase() {
	meru_free(handle);
}

shared_ptr<MeruDatabase> MeruDatabase::Open(ClientContext &context, const string &path,
											const MeruOpenSettings &settings) {
	MeruHandle *handle = nullptr;
	char *message = nullptr;
	auto status = settings.Open(context, path, &handle, &message);
	if (status == MeruStatus_ErrNotFound) {
		// What is missing is a directory, not an entry of a catalog.
		status = MeruStatus_ErrIo;
	}
	if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
	return make_shared_ptr<MeruDatabase>(handle);
}

shared_ptr<MeruDatabase> MeruDatabase::OpenReader(ClientContext &context, const string &path) {
	MeruOpenSettings settings(context);
	settings.Set("read_only", "true");
	settings.AddSecrets(context, path);
	MeruHandle *handle = nullptr;
	if (!MeruCallIfFound([&](char **err) { return settings.Open(context, path, &handle, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruDatabase>(handle);
}

shared_ptr<MeruDatabase> MeruDatabase::OpenTable(const string &name) const {
	MeruHandle *table = nullptr;
	if (!MeruCallIfFound([&](char **err) { return meru_open_table(handle, name.c_str(), &table, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruDatabase>(table);
}

shared_ptr<MeruDatabase> MeruDatabase::OpenTable(uint64_t id) const {
	MeruHandle *table = nullptr;
	if (!MeruCallIfFound([&](char **err) { return meru_open_table_id(handle, id, &table, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruDatabase>(table);
}

MeruTableListRef::MeruTableListRef(const MeruDatabase &database) {
	MeruCall([&](char **err) { return meru_tables(database.Get(), &list, err); });
}

MeruTableListRef::~MeruTableListRef() {
	meru_table_list_free(list);
}

string MeruDatabase::Path() const {
	auto path = meru_catalog_path(handle);
	string result = path ? path : "";
	meru_free_string(path);
	return result;
}

void MeruDatabase::Refresh(ClientContext &context) {
	MeruWatch watch;
	watch.interrupt = MeruWriteBatch::Interrupted;
	watch.progress = nullptr;
	watch.ctx = &context;
	MeruCall([&](char **err) { return meru_refresh_watched(handle, &watch, err); });
}

void MeruDatabase::Close() {
	if (closed.exchange(true)) {
		return;
	}
	MeruCall([&](char **err) { return meru_close(handle, err); });
}

MeruOpenSettings::MeruOpenSettings(ClientContext &context) : options(meru_options_new()) {
	if (!options) {
		throw IOException("The engine gave no options: it does not run in a process that was forked");
	}
	Value given;
	if (context.TryGetCurrentSetting(MerutableSettings::DURABILITY, given) && !given.IsNull()) {
		Set("durability", StringValue::Get(given));
	}
	if (context.TryGetCurrentSetting(MerutableSettings::MEMORY_LIMIT, given) && !given.IsNull()) {
		Set("default_memory_limit", StringValue::Get(given));
		return;
	}
	constexpr idx_t SHARE = 4;
	constexpr idx_t LEAST = idx_t(64) << 20;
	constexpr idx_t MOST = idx_t(1) << 30;
	auto limit = BufferManager::GetBufferManager(context).GetMaxMemory() / SHARE;
	Set("default_memory_limit", std::to_string(MinValue(MaxValue(limit, LEAST), MOST)));
}

MeruOpenSettings::~MeruOpenSettings() {
	meru_options_free(options);
}

int MeruOpenSettings::Open(ClientContext &context, const string &path, MeruHandle **handle, char **err) const {
	meru_options_set_interrupt(options, MeruWriteBatch::Interrupted, &context);
	auto status = meru_open_with(path.c_str(), options, handle, err);
	meru_options_set_interrupt(options, nullptr, nullptr);
	return status;
}

void MeruOpenSettings::Set(const string &key, const string &value) {
	MeruCall([&](char **err) { return meru_options_set(options, key.c_str(), value.c_str(), err); });
	given.insert(key);
}

void MeruOpenSettings::AddSecrets(ClientContext &context, const string &url) {
	if (!IsObjectStoreUrl(url)) {
		return;
	}
	auto found = S3Secrets::OptionsFor(context, url);
	bool own_credentials = false;
	for (auto &option : given) {
		own_credentials = own_credentials || S3Secrets::IsCredential(option);
	}
	for (auto &option : found) {
		// Half of one identity and half of another are none.
		if (given.count(option.first) == 0 && !(own_credentials && S3Secrets::IsCredential(option.first))) {
			MeruCall([&](char **err) {
				return meru_options_set(options, option.first.c_str(), option.second.c_str(), err);
			});
		}
	}
}

MeruTxnRef::MeruTxnRef(shared_ptr<MeruDatabase> database_p) : database(std::move(database_p)) {
	MeruCall([&](char **err) { return meru_txn_begin(database->Get(), &txn, err); });
}

MeruTxnRef::~MeruTxnRef() {
	meru_txn_free(txn);
}

void MeruTxnRef::Commit(ClientContext &context) {
	meru_txn_set_interrupt(txn, MeruWriteBatch::Interrupted, &context);
	MeruCall([&](char **err) { return meru_txn_commit(txn, nullptr, err); });
}

MeruWriteBatch::MeruWriteBatch(shared_ptr<MeruDatabase> database_p, ClientContext &context)
	: database(std::move(database_p)) {
	MeruCall([&](char **err) { return meru_write_begin(database->Get(), &write, err); });
	meru_write_set_interrupt(write, Interrupted, &context);
}

MeruWriteBatch::MeruWriteBatch(shared_ptr<MeruDatabase> database_p, ClientContext &context,
							   const MeruTableSchema *schema, bool replace)
	: database(std::move(database_p)) {
	MeruCall([&](char **err) { return meru_write_begin_table(database->Get(), schema, replace, &write, err); });
	meru_write_set_interrupt(write, Interrupted, &context);
}

MeruWriteBatch::MeruWriteBatch(shared_ptr<MeruTxnRef> txn_p, ClientContext &context, const string &table)
	: database(txn_p->SharedDatabase()), txn(std::move(txn_p)) {
	MeruCall([&](char **err) { return meru_txn_write(txn->Get(), table.c_str(), &write, err); });
	meru_write_set_interrupt(write, Interrupted, &context);
}

MeruWriteBatch::MeruWriteBatch(shared_ptr<MeruTxnRef> txn_p, ClientContext &context, const MeruTableSchema *schema,
							   bool replace)
	: database(txn_p->SharedDatabase()), txn(std::move(txn_p)) {
	MeruCall([&](char **err) { return meru_txn_write_table(txn->Get(), schema, replace, &write, err); });
	meru_write_set_interrupt(write, Interrupted, &context);
}

MeruWriteBatch::~MeruWriteBatch() {
	meru_write_free(write);
}

int MeruWriteBatch::Interrupted(void *context) {
	return static_cast<ClientContext *>(context)->interrupted ? 1 : 0;
}

void MeruWriteBatch::SetSnapshot(const MeruSnapshot *snapshot) {
	lock_guard<mutex> guard(lock);
	MeruCall([&](char **err) { return meru_write_set_snapshot(write, snapshot, err); });
}

void MeruWriteBatch::Put(ArrowArray &rows, const ArrowSchema &schema) {
	lock_guard<mutex> guard(lock);
	MeruCall([&](char **err) { return meru_write_put_arrow(write, &rows, &schema, err); });
}

void MeruWriteBatch::Delete(ArrowArray &keys, const ArrowSchema &schema) {
	lock_guard<mutex> guard(lock);
	MeruCall([&](char **err) { return meru_write_delete_arrow(write, &keys, &schema, err); });
}

MeruBlockRef MeruWriteBatch::PreparePut(ArrowArray &rows, const ArrowSchema &schema) {
	MeruBlock *block = nullptr;
	MeruCall([&](char **err) { return meru_write_prepare_put_arrow(write, &rows, &schema, &block, err); });
	return MeruBlockRef(block);
}

MeruBlockRef MeruWriteBatch::PrepareDelete(ArrowArray &keys, const ArrowSchema &schema) {
	MeruBlock *block = nullptr;
	MeruCall([&](char **err) { return meru_write_prepare_delete_arrow(write, &keys, &schema, &block, err); });
	return MeruBlockRef(block);
}

void MeruWriteBatch::Append(MeruBlockRef block) {
	lock_guard<mutex> guard(lock);
	MeruCall([&](char **err) { return meru_write_append(write, block.Release(), err); });
}

void MeruWriteBatch::Commit() {
	lock_guard<mutex> guard(lock);
	MeruCall([&](char **err) { return meru_write_commit(write, nullptr, err); });
}

void MeruWriteBatch::EndStatement() {
	if (!txn || ended.exchange(true)) {
		return;
	}
	Commit();
	txn->NoteChange();
}

} // namespace duckdb
