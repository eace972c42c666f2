#include "functions/function_arguments.hpp"

#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/parser/parsed_data/create_table_function_info.hpp"

namespace duckdb {

string NameOrPath(const TableFunctionBindInput &input, const char *function) {
	if (input.inputs[0].IsNull()) {
		throw BinderException("%s: the name or path is NULL", function);
	}
	return StringValue::Get(input.inputs[0]);
}

void RegisterDescribed(ExtensionLoader &loader, TableFunctionSet set, FunctionText text) {
	FunctionDescription description;
	// The form with the fewest arguments: what a description says of types must fit all forms.
	description.parameter_types = set.functions[0].arguments;
	description.parameter_names = std::move(text.parameters);
	description.description = std::move(text.description);
	description.examples = std::move(text.examples);
	description.categories = {"merutable"};
	CreateTableFunctionInfo info(std::move(set));
	info.descriptions.push_back(std::move(description));
	info.on_conflict = OnCreateConflict::ALTER_ON_CONFLICT;
	loader.RegisterFunction(std::move(info));
}

void RegisterDescribed(ExtensionLoader &loader, TableFunction function, FunctionText text) {
	TableFunctionSet set(function.name);
	set.AddFunction(std::move(function));
	RegisterDescribed(loader, std::move(set), std::move(text));
}

} // namespace duckdb
